"""Changes of a cube that become one commit, as Python programs make them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from ktk_engine.api.frames import Frame, Metadata, explaining_fixes, rows_by_dataset
from ktk_engine.api.names import names_of
from ktk_engine.api.opened_store import OpenedStore
from ktk_engine.change.cube_changes import (
    append_rows,
    build_cube,
    choose_datasets,
    choose_partitioned_by,
    delete_cells,
    drop_datasets,
    extend_cube,
)
from ktk_engine.conditions.condition import Condition, TrueCondition
from ktk_engine.conditions.parameters import BoundText, bind
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import ConfigurationError
from ktk_engine.log.scope import cube_scope
from ktk_engine.log.state import State
from ktk_engine.plan.cube_query import deleting_condition, row_condition
from ktk_engine.warehouse.actor import python_history
from ktk_engine.write.retry import retry_on_conflict
from ktk_engine.write.rows import Rows
from ktk_engine.write.staging import Staging, staged


class Transaction:
    """Changes of a cube that become one commit, or none; each sees what those before it did.

    Make one with `Cube.transaction`. Files are written at once, and become visible with the
    commit at the end of the block.
    """

    def __init__(self, store: OpenedStore, staging: Staging) -> None:
        self._store = store
        self._staging = staging

    def __repr__(self) -> str:
        """Show the cube and the version that it started from."""
        return f"Transaction({self._name!r}, version={self._staging.transaction.base.version})"

    @property
    def committed(self) -> State | None:
        """The cube after the commit; None before it, or where only the store can tell."""
        done = self._staging.transaction.committed
        return done.state if done else None

    def extend(
        self,
        datasets: Mapping[str, Frame],
        *,
        partition_on: Mapping[str, Sequence[str]] | None = None,
        indexes: Collection[str] = (),
        metadata: Metadata | None = None,
        overwrite: bool = False,
    ) -> None:
        """Add enrichments; see `Cube.extend`."""
        rows = self._rows(datasets)
        known = self._staging.state.cube
        layouts, noted = _layouts(partition_on), metadata or {}
        named = names_of("indexes", indexes)
        with explaining_fixes(*datasets.values()):
            extend_cube(self._staging, known, rows, layouts, noted, overwrite, named)

    def append(self, datasets: Mapping[str, Frame], *, metadata: Metadata | None = None) -> None:
        """Add rows to datasets; see `Cube.append`."""
        rows = self._rows(datasets)
        with explaining_fixes(*datasets.values()):
            append_rows(self._staging, rows, metadata or {})

    def update(
        self,
        datasets: Mapping[str, Frame],
        where: str | Condition | None = None,
        *,
        parameters: Mapping[str, object] | None = None,
        metadata: Metadata | None = None,
    ) -> None:
        """Replace rows of datasets; see `Cube.update`."""
        rows, condition = self._rows(datasets), self._condition(bind(where, parameters))
        delete_cells(self._staging, condition, list(rows), self._store._cache)
        with explaining_fixes(*datasets.values()):
            append_rows(self._staging, rows, metadata or {})

    def delete(
        self,
        where: str | Condition,
        datasets: Collection[str] | None = None,
        *,
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        """Delete rows; see `Cube.delete`."""
        state = self._staging.state
        bound = bind(where, parameters)
        condition = deleting_condition(f"Cube {self._name}", bound, _columns(state))
        named = None if datasets is None else names_of("datasets", datasets)
        names = choose_datasets(self._staging, condition) if named is None else named
        delete_cells(self._staging, condition, names, self._store._cache)

    def remove_partitions(
        self,
        where: str | Condition | None = None,
        datasets: Collection[str] | None = None,
        *,
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        """Delete whole partitions; see `Cube.remove_partitions`."""
        condition = self._condition(bind(where, parameters))
        named = None if datasets is None else names_of("datasets", datasets)
        names = choose_partitioned_by(self._staging, condition, named)
        delete_cells(self._staging, condition, names, self._store._cache)

    def drop(self, *datasets: str) -> None:
        """Drop datasets; see `Cube.drop`."""
        drop_datasets(self._staging, datasets)

    @property
    def _name(self) -> str:
        return self._staging.transaction.base.scope.name

    def _rows(self, datasets: Mapping[str, Frame]) -> dict[str, Rows]:
        return rows_by_dataset(self._name, datasets)

    def _condition(self, where: str | BoundText | Condition | None) -> Condition:
        return TrueCondition() if where is None else cube_condition(self._staging.state, where)


def cube_condition(state: State, where: str | BoundText | Condition) -> Condition:
    """Read a condition on columns of any dataset of a cube."""
    return row_condition(f"Cube {state.scope.name}", where, _columns(state))


def _columns(state: State) -> pa.Schema:
    """The columns of all datasets of a cube, once each."""
    fields: dict[str, pa.Field] = {}
    for snapshot in state.snapshots().values():
        fields |= {field.name: field for field in snapshot.schema if field.name not in fields}
    return pa.schema(list(fields.values()))


def _layouts(given: Mapping[str, Sequence[str]] | None) -> dict[str, tuple[str, ...]]:
    """The partition columns of datasets that are laid out in another way than the cube."""
    if given is not None and not isinstance(given, Mapping):
        raise ConfigurationError(
            "partition_on must be a mapping of datasets to the columns that their files are laid "
            f"out by, but is {given!r}. Nothing was written."
        )
    return {name: names_of("partition_on", columns) for name, columns in (given or {}).items()}


@contextmanager
def transaction(
    store: OpenedStore, state: State, history: Mapping[str, str] | None = None
) -> Iterator[Transaction]:
    """Let a block change a cube, and commit all of it at its end.

    Args:
        store: whose cube it is.
        state: the cube's scope, which need not hold anything yet.
        history: what the log says about the commit; None for a Python program.
    """
    history = history or python_history()
    with staged(state, f"change {state.scope.name}", history) as staging:
        yield Transaction(store, staging)


def retry_transaction_on_conflict(
    store: OpenedStore,
    name: str,
    change: Callable[[Transaction], None],
    history: Mapping[str, str] | None = None,
) -> State | None:
    """Change a cube as one commit, and compute it again where another commit came first.

    Args:
        store: whose cube it is.
        name: the cube.
        change: makes the change; it needs nothing that can be had only once.
        history: as for `transaction`.

    Returns:
        See `Transaction.committed`.
    """

    def run(state: State) -> State | None:
        with transaction(store, state, history) as changes:
            change(changes)
        return changes.committed

    return retry_on_conflict(store._store, cube_scope(name), run)


def build(
    store: OpenedStore,
    state: State,
    specification: CubeSpecification,
    datasets: Mapping[str, Frame],
    partition_on: Mapping[str, Sequence[str]],
    metadata: Metadata,
    overwrite: bool,
) -> None:
    """Build a cube as one commit; see `Store.build`."""
    rows = rows_by_dataset(specification.prefix, datasets)
    with transaction(store, state) as changes:
        staging = changes._staging
        build_cube(staging, specification, rows, _layouts(partition_on), metadata, overwrite)
