"""Reports after a whole run which datasets no node of the project builds any more."""

from __future__ import annotations

from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.ktk.builders import Builders
from dbt.adapters.ktk.store_adapter import StoreAdapter
from dbt.adapters.ktk.voice import DBT
from ktk_engine.errors import KtkError
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import resolve
from ktk_engine.maintain.orphans import ProjectNodes, find_orphans
from ktk_engine.messages import joined

_LOGGER = AdapterLogger("ktk")
_CHOICES = ("select", "models", "exclude", "selector", "resource_types", "exclude_resource_types")


class OrphanedDatasets(StoreAdapter):
    """Names the datasets of models that were deleted or renamed; deletes nothing."""

    _reported: Builders | None = None

    def cleanup_connections(self) -> None:
        """End a run: dbt calls this after its last node, and again before it exits."""
        while self._taken_out:
            self._say_missing(*self._taken_out.pop())
        if (
            self._builders is not None
            and self._builders is not self._reported
            and _is_whole_run(self.config)
        ):
            self._reported = self._builders
            for schema in self._builders.stored:
                self._say_orphans(schema)
        super().cleanup_connections()

    def _say_missing(self, schema: str, uuid: str) -> None:
        """Warn of a dataset that the run should have rebuilt, but did not."""
        try:
            store = self.connections.warehouse.find_schema(schema)
            state = None if store is None else resolve(store, scope_of(uuid))
        except KtkError as error:  # the run itself is over
            _LOGGER.debug(f"Datasets that were dropped: {error}")
            return
        if state is None or uuid in state.datasets:
            return
        cube, dataset = state.scope.cube, state.scope.dataset_id(uuid)
        _LOGGER.warning(
            f"This run removed {dataset} from cube {cube} of schema {schema}, and has not built it "
            f"again. Build its model, or set the cube back: ktk history {cube}, and then ktk "
            f"restore {cube} to the version before."
        )

    def _say_orphans(self, schema: str) -> None:
        assert self._builders is not None
        nodes = ProjectNodes(str(self.config.project_name), self._builders.stored[schema])
        try:
            store = self.connections.warehouse.find_schema(schema)
            found = [] if store is None else find_orphans(store, nodes)
        except KtkError as error:  # the run itself is over
            _LOGGER.debug(f"Datasets that no model builds: {error.said(DBT)}")
            return
        if found:
            listed = joined("; ", [orphan.message for orphan in found]).said(DBT)
            _LOGGER.info(
                f"No model of {nodes.project} builds these datasets of schema {schema}: "
                f"{listed}. Nothing was deleted."
            )


def _is_whole_run(config: Any) -> bool:
    """Whether dbt builds all of the project, or runs all of its models."""
    args = getattr(config, "args", None)
    if getattr(args, "which", "") not in ("build", "run"):
        return False
    if any(getattr(args, name, None) for name in _CHOICES):
        return False
    default_selector = getattr(config, "get_default_selector_name", lambda: None)
    return not default_selector()
