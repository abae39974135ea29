"""Rows to delete: how many, of which datasets, before anything is deleted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ktk_engine.api.opened_store import OpenedStore
from ktk_engine.api.transaction import cube_condition, retry_transaction_on_conflict
from ktk_engine.api.write_table import delete_from
from ktk_engine.catalog.find_scope import find_dataset, find_scope
from ktk_engine.change.cube_changes import datasets_with
from ktk_engine.conditions.condition import Condition, conjuncts
from ktk_engine.local.answer import LocalEngine
from ktk_engine.log.state import State
from ktk_engine.plan.cube_query import row_condition
from ktk_engine.plan.plan_dataset import plan_rows
from ktk_engine.write.affected_files import affected_files


@dataclass(frozen=True)
class Deletion:
    """What a deletion removes from a cube or table.

    Attributes:
        store: where it lives.
        state: the cube or table.
        condition: which rows go.
        datasets: ids of the datasets that lose some; of a table, its name.
    """

    store: OpenedStore
    state: State
    condition: Condition
    datasets: tuple[str, ...]

    def counts(self) -> dict[str, tuple[int, int]]:
        """By dataset, the rows that go and the files that can hold one; rows are read for it."""
        return {dataset: self._count(dataset) for dataset in self.datasets}

    def run(self, history: Mapping[str, str]) -> int:
        """Delete them, as one commit; see `Cube.delete`.

        Returns:
            The newest version.
        """
        name = self.state.scope.name
        if self.state.scope.kind == "cube":
            condition, datasets = self.condition, self.datasets
            retry_transaction_on_conflict(
                self.store, name, lambda c: c.delete(condition, datasets), history
            )
        else:
            delete_from(self.store, name, self.condition, history)
        return find_scope(self.store._store, name).version

    def _count(self, dataset: str) -> tuple[int, int]:
        store, cache = self.store._store, self.store._cache
        snapshot = self.state.snapshot(self.state.scope.uuid_of(dataset))
        parts = conjuncts(self.condition)
        names = [next(n for n in snapshot.schema.names if n not in snapshot.partition_keys)]
        plan = plan_rows(store, snapshot, self.state.version, names, parts, cache)
        rows = LocalEngine(store, cache.footers).count(plan)
        return rows, affected_files(store, snapshot, parts).num_rows


def plan_deletion(
    store: OpenedStore, name: str, where: str, datasets: Collection[str] | None = None
) -> Deletion:
    """Find out what a deletion means; nothing is written.

    Args:
        store: where the cube or table lives.
        name: its name.
        where: which rows go, as SQL text.
        datasets: as for `Cube.delete`; of a table None.

    Raises:
        DatasetNotFoundError: there is no such cube, table or dataset.
        ConditionError: the condition cannot be parsed.
        ConfigurationError: the seed dataset lacks a column of the condition.
        QueryError: there is no such column.
    """
    state = find_scope(store._store, name)
    if state.scope.kind != "cube":
        condition = row_condition(f"Table {name}", where, state.snapshot(name).schema)
        return Deletion(store, state, condition, (name,))
    condition = cube_condition(state, where)
    if datasets is None:
        return Deletion(store, state, condition, tuple(datasets_with(state, condition)))
    chosen = [state.scope.dataset_id(find_dataset(state, item)) for item in datasets]
    return Deletion(store, state, condition, tuple(chosen))
