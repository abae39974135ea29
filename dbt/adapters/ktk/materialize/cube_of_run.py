"""The other datasets of a cube in a run: built by the run, or read where dbt defers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from dbt.adapters.ktk.builders import Built, selected_nodes
from dbt.adapters.ktk.config.model_config import DatasetConfig
from dbt.adapters.ktk.store_adapter import StoreAdapter
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import resolve
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.types.identifier import Identifier


class CubeOfRun(StoreAdapter):
    """Knows which datasets of a cube a run builds, and where the others are stored."""

    def _target(
        self,
        schema: str,
        config: DatasetConfig,
        history: Mapping[str, str],
        full_refresh: bool = False,
    ) -> WriteRequest:
        """Add to a write what its run knows: its node, and where the cube's others are."""
        target = replace(config.target, history=history, full_refresh=full_refresh)
        if self._builders is None or not target.cube:
            return target
        others = [
            item
            for item in self._builders.of_cube(schema, target.cube)
            if item.dataset != target.dataset
        ]
        return replace(
            target,
            built_by=self._builders.of(schema, target.cube),
            external=self._external(schema, others),
            rebuilt=partial(self._rebuilt, others) if full_refresh else tuple,
        )

    def _rebuilt(self, others: Iterable[Built]) -> frozenset[str]:
        """Ids of the datasets that this run still has to rebuild, or rebuilds now.

        dbt skips nodes that read a failed one, so their datasets stay as they are.
        """
        assert self._builders is not None
        runs, of_run = selected_nodes(), bool(getattr(self.config.args, "FULL_REFRESH", False))
        return frozenset(
            item.dataset
            for item in others
            if item.node in runs
            and item.node not in self._ended
            and not (self._failed and self._builders.is_below(item.node, self._failed))
            and (of_run if item.full_refresh is None else item.full_refresh)
        )

    def _external(self, schema: str, others: Iterable[Built]) -> dict[str, Snapshot]:
        """Datasets of a cube that are read in another schema or store, by id.

        This run does not build them, and here they are only a clone, or missing because dbt defers
        to another environment.
        """
        runs, found = selected_nodes(), {}
        unbuilt = [item for item in others if item.node not in runs]
        listed = self.list_relations(None, schema) if unbuilt else []
        is_view = {Identifier(str(item.identifier)): item.is_view for item in listed}
        for item in unbuilt:
            known = is_view.get(Identifier(item.alias))
            if known is False:
                continue
            place = (schema, item.alias) if known else None
            if place is None and item.deferred:
                place = self._place_of_state(item)
            behind = self.relations.behind(*place) if place is not None else None
            if behind is None or behind[1].uuid != item.uuid:
                continue
            where, relation = behind
            if not self.relations.is_same_store(where, schema):
                state = resolve(self.relations.store_of(where), scope_of(relation.uuid))
                found[item.dataset] = state.snapshot(relation.uuid)
        return found
