"""Staged runs: a run publishes all that it writes at its end, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import available
from dbt.adapters.contracts.connection import AdapterRequiredConfig, AdapterResponse
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from dbt.adapters.ktk.config.stage import STAGE
from dbt.adapters.ktk.errors import translated
from dbt.adapters.ktk.store_adapter import StoreAdapter
from dbt.adapters.ktk.voice import DBT
from ktk_engine.log.commit import Committed
from ktk_engine.log.scope import cube_scope
from ktk_engine.messages import spoken
from ktk_engine.warehouse.staged_warehouse import StagedWarehouse

if TYPE_CHECKING:
    import agate

_LOGGER = AdapterLogger("ktk")
_MACRO = "macro.dbt_ktk.ktk_publish_stage"
_HOOK = 'on-run-end: "{{ ktk_publish_stage(results) }}"'
# The hook's statement: dbt shows an error in a hook's SQL as the hook's own failure.
_END = "/* ktk: publish the staged run, or discard it */"
_FAILED = frozenset({"error", "fail", "runtime error", "partial success"})
_WRITES = frozenset({"model", "seed", "snapshot"})
_REASONS = 10


class StagedRuns(StoreAdapter):
    """Ends a staged run; what it staged belongs to the `StagedWarehouse` of the connections."""

    _stage_is_checked = False
    _results: tuple[Any, ...] = ()  # of the run that ends

    def __init__(self, config: AdapterRequiredConfig, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        self._is_retry = _command() == "retry"  # only dbt's main thread knows

    def check_stage(self) -> None:
        """Refuse a staged run that could not end, once, before anything is written.

        Raises a `DbtConfigError` if the project lacks the hook, or if this is `dbt retry`.
        """
        if self._stage_is_checked or self._stage is None:
            return
        if self._is_retry:
            raise DbtConfigError(
                "dbt retry runs only what failed, but a failed staged run keeps nothing of what it "
                "wrote: a retry would publish only a part. Run the same command again instead of "
                f"dbt retry (the variable `{STAGE}` is true). Nothing was written."
            )
        if not self._ends_by_hook():
            raise DbtConfigError(
                f"The variable `{STAGE}` is true, so that this run writes to a stage, but the "
                "project does not publish it. Nothing was written. Add to dbt_project.yml:\n"
                f"  {_HOOK}"
            )
        self._stage_is_checked = True
        _LOGGER.info("Staged run: others see what it writes once all of it has succeeded.")

    def pre_model_hook(self, config: Any) -> Any:
        """See `check_stage`: with `--no-populate-cache` this is the first check."""
        self.check_stage()
        return super().pre_model_hook(config)

    @available.parse(lambda *_, **__: "")
    def end_staged_run(self, results: Iterable[Any]) -> str:
        """Note how a run went.

        Args:
            results: dbt's, as `on-run-end` has them.

        Returns:
            The statement that publishes the run or discards it; empty if it is not staged.
        """
        if self._stage is None:
            return ""
        self._results = tuple(results)
        return _END

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[AdapterResponse, agate.Table]:
        """Run a statement, or end the staged run."""
        if _END not in sql:
            return super().execute(sql, auto_begin, fetch, limit)  # type: ignore[no-any-return]
        if sql.strip() != _END:
            raise DbtRuntimeError(f"The macro must be alone in its line of {_HOOK}")
        from dbt_common.clients.agate_helper import empty_table

        return AdapterResponse(self._end_stage()), empty_table()

    def cleanup_connections(self) -> None:
        """Release what threads hold; discard a stage that no hook has ended.

        Raises a `DbtRuntimeError` for such a stage, because dbt would call the run a success.
        """
        super().cleanup_connections()
        stage = self._stage
        if stage is None:
            return
        is_lost = stage.has_commits
        stage.discard(is_over=True)
        if not is_lost:
            return
        if sys.exc_info()[0] is None:
            raise DbtRuntimeError(
                "The staged run was discarded, since on-run-end did not publish it: an earlier "
                f"hook failed, or the macro is not alone in its line, as in {_HOOK}"
            )
        _LOGGER.warning("The staged run was discarded: it did not finish.")

    @property
    def _stage(self) -> StagedWarehouse | None:
        """The open stage of this run; None without one."""
        warehouse = self.connections.warehouse
        is_open = isinstance(warehouse, StagedWarehouse) and warehouse.is_open
        return warehouse if is_open else None  # type: ignore[return-value]

    def _end_stage(self) -> str:
        """Publish or discard the stage; say which, and why."""
        stage, results = self._stage, self._results
        if stage is None:
            return "OK"
        if reasons := list(_reasons(results)):
            stage.discard()
            _mark_discarded(results)
            shown = "".join(f"\n  {reason}" for reason in reasons[:_REASONS])
            more = f"\n  and {len(reasons) - _REASONS} more" if len(reasons) > _REASONS else ""
            _LOGGER.warning(
                f"The staged run was discarded; nothing of it was published:{shown}{more}"
            )
            return "discarded"
        try:
            with translated():
                done = stage.publish()
        except BaseException:
            _mark_discarded(results)
            raise
        new = [item for item in done if item.is_new]
        said = "; ".join(map(_published, new)) or "nothing changed"
        _LOGGER.info(f"The staged run was published: {said}")
        return f"published: {said}"

    def _ends_by_hook(self) -> bool:
        """Whether the project's `on-run-end` calls the macro that publishes."""
        manifest: Any = self._macro_resolver
        nodes: Mapping[str, Any] = getattr(manifest, "nodes", None) or {}
        macros: Mapping[str, Any] = getattr(manifest, "macros", None) or {}
        waiting = [node for node in nodes.values() if "on-run-end" in node.tags]
        seen: set[str] = set()
        while waiting:
            found = set(waiting.pop().depends_on.macros) - seen
            seen |= found
            waiting += [macros[name] for name in found if name in macros]
        return _MACRO in seen


def _command() -> str:
    """The command of dbt that runs: the configuration has only the retried one."""
    import click

    context = click.get_current_context(silent=True)
    return str(context.info_name) if context else ""


def _reasons(results: Iterable[Any]) -> Iterator[str]:
    """Why dbt does not call a run a success; skipped nodes count only if none failed."""
    results = [item for item in results if str(item.node.resource_type) != "exposure"]
    failed = [item for item in results if str(item.status) in _FAILED]
    for item in failed or [item for item in results if str(item.status) == "skipped"]:
        message = str(item.message or "").strip().partition("\n")[0]
        said = f"{item.node.resource_type} {item.node.name}: {item.status}"
        yield f"{said}: {message}" if message else said


def _mark_discarded(results: Iterable[Any]) -> None:
    """Mark nodes whose rows were discarded as not built."""
    for item in results:
        if str(item.node.resource_type) in _WRITES and str(item.status) == "success":
            item.status = type(item.status)("skipped")
            item.message = "discarded with the staged run"


def _published(done: Committed) -> str:
    entry = done.entry
    kind, _, name = entry.scope.partition("/")
    changed = ", ".join(cube_scope(name).dataset_id(uuid) for uuid in entry.changes)
    said = f"cube {name} ({changed})" if kind == "cube" else f"table {name}"
    return f"{said}, version {entry.version}" + (
        f" ({spoken(done.warning, DBT)})" if done.warning else ""
    )
