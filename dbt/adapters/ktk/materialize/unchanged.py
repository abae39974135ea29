"""Leaves out nodes whose rows would be those that are there: `skip_unchanged`.

See docs/design/files-and-commits.md, Notes of what was computed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from multiprocessing.context import SpawnContext
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.connection import AdapterRequiredConfig
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from dbt.adapters.ktk.config.model_config import DatasetConfig, ModelConfig, config_of_node
from dbt.adapters.ktk.config.skip_unchanged import SkipUnchanged, skip_unchanged_of
from dbt.adapters.ktk.history import history_of
from dbt.adapters.ktk.materialize.computed_from import Work
from dbt.adapters.ktk.materialize.cube_of_run import CubeOfRun
from dbt.adapters.ktk.materialize.outcome import KtkResponse, Outcome, response_of_skipped
from dbt.adapters.ktk.materialize.published import published
from ktk_engine.describe.difference import first_difference
from ktk_engine.formatting import counted
from ktk_engine.log.change.reads import Reads
from ktk_engine.log.commit import Committed
from ktk_engine.log.computed import Computed, read_computed, versions_read
from ktk_engine.log.state import State, resolve
from ktk_engine.plan.statement.judge import why_computed_again
from ktk_engine.plan.statement.named_relations import NamedRelations
from ktk_engine.publish.publish import publish
from ktk_engine.write.write_result import RowChanges

_LOGGER = AdapterLogger("ktk")
RERUN = "KTK_RERUN"


class Unchanged(CubeOfRun):
    """Judges before a node runs whether it has to, by the note of its last run."""

    def __init__(self, config: AdapterRequiredConfig, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        self._works: dict[str, Work] = {}  # of nodes that run to be checked
        # nodes that `check` runs although they could have been skipped, with the version before
        self._expected: dict[str, State] = {}
        self._judged: list[str] = []  # what came of each node
        # what nodes are judged by, and the moment of the run at which it was read
        self._read_at = (-1, self.connections.sessions.relations())

    @available.parse(lambda *_, **__: None)
    def unchanged(
        self,
        model: Mapping[str, Any],
        relation: BaseRelation,
        code: str | bytes,
        full_refresh: bool = False,
    ) -> KtkResponse | None:
        """Say that a node's rows would be those that are there; None if it has to run.

        Args:
            model: the node as Jinja's `model`.
            relation: the node's relation.
            code: its compiled query, or its CSV file.
            full_refresh: whether this run is one.

        Returns:
            The response for dbt's log and run_results.
        """
        skip = skip_unchanged_of(model["config"])
        if not skip.is_on:
            return None
        config = self._dataset_config_of(model)
        node, schema = str(model["unique_id"]), str(relation.schema)
        # What is checked runs with what it was judged by; what has to run looks again.
        relations = None if skip.checks else self._relations_of_run()
        work = self._work(model, code, full_refresh, relations)
        with self.connections.running():
            state, note, why = self._why(schema, config, work, skip)
        if why or note is None or state is None:
            self._judged.append("unknown" if work.unknown else "changed")
            _LOGGER.info(f"{relation} runs: {why}")
            return None
        if skip.checks:
            self._works[node], self._expected[node] = work, state
            _LOGGER.info(f"{relation} runs to be checked: it is unchanged")
            return None
        self._judged.append("unchanged")
        self.connections.writes_nothing()
        self._resolved[node] = state
        if state.head is not None:  # what a run that failed there has left behind
            publish(Committed(state, state.head, {}, state))
        published(Outcome("", RowChanges()), state.store, config, history_of(model))
        return response_of_skipped(note.version, f"{_age(state.store.now() - note.time)} ago")

    def _view_is_unchanged(
        self, model: Mapping[str, Any], relation: BaseRelation, sql: str, full_refresh: bool
    ) -> bool:
        """Whether a view with this text and columns is stored, so that Spark need not check it."""
        work = self._work(model, sql, full_refresh, self._relations_of_run())
        known = work.columns_read  # Spark is to check the query with these columns or later ones
        view = self.relations.view(str(relation.schema), str(relation.identifier))
        builder = self._owner(str(model["unique_id"])).builder
        is_unchanged = (
            view is not None
            and known is not None
            and not _why_in_any_case(work)
            and (view.node, view.project) == (builder.node, builder.project)
            and view.checked == work.of_view(view.sql)
        )
        self._judged.append("unchanged" if is_unchanged else "changed")
        if not is_unchanged or skip_unchanged_of(model["config"]).checks:
            return False
        self.connections.writes_nothing()
        return True

    def _why(
        self, schema: str, config: DatasetConfig, work: Work, skip: SkipUnchanged
    ) -> tuple[State | None, Computed | None, str]:
        """What is stored, its note, and why the node runs; empty if it does not have to."""
        if why := _why_in_any_case(work):
            return None, None, why
        if config.incremental is not None and config.incremental.strategy == "microbatch":
            return None, None, "it is computed in batches"
        store = self.connections.warehouse.find_schema(schema)
        state = None if store is None else work.relations.state(schema, config.target.scope)
        found = None if state is None else state.datasets.get(config.target.uuid)
        if state is None or found is None or found.entry is None:
            return None, None, "it has no rows yet"
        entry, owner = found.entry, config.target.owner
        node = (owner.builder.node, owner.builder.project) if owner else ("", "")
        relation = config.target.relation or config.target.dataset
        if (entry.relation or relation, entry.role) != (relation, config.target.role) or (
            (entry.node, entry.project) != node
        ):
            return state, None, "another node built it, or under another name"
        note = read_computed(state.store, state.scope, config.target.uuid)
        if note is not None and skip.at_most and state.store.now() - note.time > skip.at_most:
            return state, note, f"its rows are {_age(state.store.now() - note.time)} old"
        if note is not None and work.unknown:
            what, where = next(iter(work.unknown.items()))
            return state, note, f"{what} ({where})" if where else what
        why = why_computed_again(
            *(note, state, config.target.uuid, work.digests, work.trace),
            continues=config.keeps_rows,
        )
        return state, note, why

    def _relations_of_run(self) -> NamedRelations:
        """The relations as they were after this run's last write, or later."""
        moment = self.connections.moment
        if self._read_at[0] != moment:
            self._read_at = moment, self.connections.sessions.relations()
        return self._read_at[1]

    def _work(
        self,
        model: Mapping[str, Any],
        code: str | bytes,
        full_refresh: bool,
        relations: NamedRelations | None = None,
    ) -> Work:
        """What decides about a node's rows, as it is now or as it is in `relations`."""
        known = self._works.pop(str(model["unique_id"]), None)
        if known is not None and (known.code, known.full_refresh) == (code, full_refresh):
            return known
        projects = [self.config, *(getattr(self.config, "dependencies", None) or {}).values()]
        hooks = [str(item) for one in projects for item in getattr(one, "on_run_start", ())]
        return Work(
            model,
            code,
            full_refresh,
            self.connections.sessions,
            relations or self.connections.sessions.relations(),
            self.config.credentials.server_side_parameters,
            tuple(dict.fromkeys(hooks)),
            self._snapshot_macros() if model.get("resource_type") == "snapshot" else {},
        )

    def _snapshot_macros(self) -> dict[str, str]:
        """The texts of all macros that may say what a snapshot compares."""
        macros: Mapping[str, Any] = getattr(self._macro_resolver, "macros", None) or {}
        return {name: item.macro_sql for name, item in macros.items() if "snapshot" in name}

    def _check_expected(
        self, work: Work, uuid: str, outcome: Outcome, reads: Iterable[Reads]
    ) -> None:
        """Raise a `DbtRuntimeError` if a node that could have been skipped has other rows now."""
        model = work.model
        before = self._expected.pop(str(model["unique_id"]), None)
        if before is None:
            return
        self._judged.append("unchanged")
        judged = [work.trace.reads()] if work.trace is not None else []
        then, now = (
            [item for item in versions_read(before.store, side) if item.uuid != uuid]
            for side in (judged, reads)
        )
        if outcome.unchanged or then != now:  # others have changed what it reads since
            return
        after = resolve(before.store, before.scope)
        difference = first_difference(before, after, uuid)
        if difference:
            note = read_computed(before.store, before.scope, uuid)
            read = ", ".join(f"{item.uuid} {item.version}" for item in note.read) if note else ""
            raise DbtRuntimeError(
                f"{model['name']} could have been skipped, since nothing has changed that it is "
                f"known to be computed from (read: {read or 'nothing'}), but its rows are other "
                f"ones: {difference}. Version {outcome.version} has the new rows. It depends on "
                "something else. Set skip_unchanged: false for it, and see what it is known to "
                f"depend on: ktk why {before.scope.name}"
            )

    def cleanup_connections(self) -> None:
        """End a run: say once how many nodes were unchanged, and how many tests needed Spark."""
        if number := len(self._judged):
            found = Counter(self._judged)
            self._judged.clear()
            unknown = found["unknown"]
            more = f", {unknown} could not be judged (ktk why)" if unknown else ""
            _LOGGER.info(f"{found['unchanged']} of {counted(number, 'node')} unchanged{more}")
        if tests := dict(self.connections.tests):
            self.connections.tests.clear()
            _LOGGER.info(f"{sum(tests.values())} of {counted(len(tests), 'test')} needed Spark")
        super().cleanup_connections()

    def _config_of(self, model: Mapping[str, Any]) -> ModelConfig:
        found = config_of_node(model)
        if not isinstance(found, DatasetConfig):
            return found
        owner = self._owner(str(model["unique_id"]))
        return replace(found, target=replace(found.target, owner=owner))

    def _dataset_config_of(self, model: Mapping[str, Any]) -> DatasetConfig:
        """The configuration of a model whose materialization writes a dataset."""
        config = self._config_of(model)
        if isinstance(config, DatasetConfig):
            return config
        raise DbtConfigError(  # a project's own materialization may call the adapter
            f"Model {config.model}: materialized {config.materialized} stores no rows."
        )


def _why_in_any_case(work: Work) -> str:
    """What makes a node run whatever is stored; empty if nothing does."""
    if os.environ.get(RERUN, "").lower() not in ("", "0", "false"):
        return f"{RERUN} is set"
    if work.full_refresh:
        return "this is a full refresh"
    config = work.model["config"]
    return "it has hooks" if config.get("pre-hook") or config.get("post-hook") else ""


def _age(age: timedelta) -> str:
    """How old something is, for people."""
    minutes = max(int(age.total_seconds()) // 60, 0)
    for size, one in ((1440, "day"), (60, "hour"), (1, "minute")):
        if minutes >= size:
            return counted(minutes // size, one)
    return "less than a minute"
