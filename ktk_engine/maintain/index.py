"""Builds and drops secondary indexes, as one commit that touches no data file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.catalog.find_scope import find_dataset, find_scope
from ktk_engine.cube.user_metadata import DIMENSION_COLUMNS, SUPPRESS_INDEX_ON, cube_value
from ktk_engine.errors import CommitConflictError, ConfigurationError, DatasetNotFoundError
from ktk_engine.files.build_index import pairs_of_files
from ktk_engine.files.index_place import IndexPlace, pairs_of_index
from ktk_engine.format.index_file import PARTITION_COLUMN
from ktk_engine.gate.gate import check_scope
from ktk_engine.log.change.change_set import DatasetChange
from ktk_engine.log.state import State
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.maintain.change_datasets import ChangeResult
from ktk_engine.publish.publish import publish
from ktk_engine.snapshot.column_index import ColumnIndex, indices_of, with_indices
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.identifier import find_names
from ktk_engine.types.type_class import role_problem


@dataclass(frozen=True)
class IndexPlan:
    """Which indexes to build or to drop."""

    state: State  # the scope as it was planned on
    columns: Mapping[str, tuple[str, ...]]  # uuid -> columns; never empty
    drop: bool  # whether the indexes go

    def __str__(self) -> str:
        scope = self.state.scope
        items = (f"{scope.dataset_id(uuid)} ({', '.join(n)})" for uuid, n in self.columns.items())
        return ", ".join(items)


def change_indexes(
    store: ObjectStore,
    name: str,
    columns: Sequence[str],
    dataset: str | None = None,
    history: Mapping[str, str] | None = None,
    *,
    drop: bool = False,
) -> ChangeResult:
    """Index columns of a cube or table, or drop their indexes, in one commit.

    Without `dataset`, every dataset that has a column counts. A dimension column of the seed
    dataset without an index is recorded as suppressed, so that Kartothek does not miss the index.
    If there is nothing to do, the result has no datasets and the present version.
    """
    return run_index_plan(plan_indexes(store, name, columns, dataset, drop=drop), history)


def plan_indexes(
    store: ObjectStore,
    name: str,
    columns: Sequence[str],
    dataset: str | None = None,
    *,
    drop: bool = False,
) -> IndexPlan:
    """Find what would change; see `change_indexes`."""
    state = find_scope(store, name)
    if state.scope.kind != "cube" and dataset is not None:
        raise DatasetNotFoundError(f"{name} is a table, not a cube: it has no dataset {dataset}.")
    uuids = [find_dataset(state, dataset)] if dataset is not None else list(state.datasets)
    snapshots = {uuid: state.snapshot(uuid) for uuid in uuids}
    found: dict[str, list[str]] = {}
    known = dict.fromkeys(name for item in snapshots.values() for name in item.schema.names)
    for column in dict.fromkeys(find_names(columns, known)):
        _check_column(state, snapshots, column)
        for uuid, snapshot in snapshots.items():
            if column in snapshot.partition_keys or column not in snapshot.schema.names:
                continue
            if drop or _is_wanted(snapshot, column):
                found.setdefault(uuid, []).append(column)
    if drop:
        found = {
            uuid: [c for c in names if not _is_dropped(snapshots[uuid], c)]
            for uuid, names in found.items()
        }
    return IndexPlan(state, {uuid: tuple(names) for uuid, names in found.items() if names}, drop)


def run_index_plan(plan: IndexPlan, history: Mapping[str, str] | None = None) -> ChangeResult:
    """Commit what was planned; see `change_indexes`."""
    state, scope = plan.state, plan.state.scope
    if not plan.columns:
        return ChangeResult(scope.name, (), state.version)
    verb = "drop index on" if plan.drop else "index"
    columns = dict.fromkeys(c for names in plan.columns.values() for c in names)
    reason, said = f"{verb} {', '.join(columns)}", history or {}
    operation = f"{reason} of {scope.name}"
    with ScopeTransaction(state, operation, said, check_scope, publish) as changing:
        commit_id = changing.commit_id
        for uuid, names in plan.columns.items():
            place = IndexPlace(state.store, uuid, commit_id, scope.segment_folder(commit_id))
            rebase = partial(_dropped, names) if plan.drop else _Indexed(place, names)
            changing.change(DatasetChange(uuid, "index", rebase, frozenset()))
        changing.commit(reason)
    return ChangeResult.of(changing)


def _check_column(state: State, snapshots: Mapping[str, Snapshot], column: str) -> None:
    """Refuse a column that no dataset has, that needs its index, or that cannot have one."""
    what = str(state.scope) if len(snapshots) != 1 else f"Dataset {next(iter(snapshots))}"
    having = [item for item in snapshots.values() if column in item.schema.names]
    if not having:
        known = sorted({name for item in snapshots.values() for name in item.schema.names})
        raise ConfigurationError(
            f"{what} has no column `{column}`.{did_you_mean(column, known)} It has: "
            f"{', '.join(known)}. Nothing was written."
        )
    plain = [item for item in having if column not in item.partition_keys]
    if not plain:
        raise ConfigurationError(
            f"{what}: `{column}` is a partition column. It needs no index: files of other values "
            "are never opened, since each value has its own folder. Nothing was written."
        )
    problem = role_problem(plain[0].schema.field(column).type, "index")
    if column == PARTITION_COLUMN:
        problem = "index files have a column of this name for something else; rename it"
    if problem:
        raise ConfigurationError(
            f"{what}: `{column}` cannot be indexed: {problem}. Nothing was written."
        )


def _is_wanted(snapshot: Snapshot, column: str) -> bool:
    """Whether a column still has to be indexed."""
    return column not in snapshot.with_index or column in _suppressed(snapshot)


def _is_dropped(snapshot: Snapshot, column: str) -> bool:
    """Whether a column has no index, and the cube does not expect one."""
    return column not in snapshot.with_index and not _is_to_be_suppressed(snapshot, column)


def _is_to_be_suppressed(snapshot: Snapshot, column: str) -> bool:
    """Whether the cube expects an index on a column unless its metadata says otherwise."""
    dimensions = cube_value(snapshot.metadata, DIMENSION_COLUMNS) or ()
    return snapshot.is_seed and column in dimensions and column not in _suppressed(snapshot)


def _suppressed(snapshot: Snapshot) -> frozenset[str]:
    """Dimension columns without an index; the seed dataset's metadata names them for all."""
    if not snapshot.is_seed:
        return frozenset()
    return frozenset(cube_value(snapshot.metadata, SUPPRESS_INDEX_ON) or ())


def _dropped(names: Sequence[str], base: Snapshot | None, attempt: int) -> Snapshot:
    """Take indexes from a dataset."""
    base = _present(base, names)
    suppressed = [name for name in names if _is_to_be_suppressed(base, name)]
    kept = {name: item for name, item in indices_of(base).items() if name not in names}
    metadata = base.metadata
    if suppressed:
        metadata = {**metadata, SUPPRESS_INDEX_ON: sorted(_suppressed(base).union(suppressed))}
    return replace(with_indices(base, kept), metadata=metadata)


@dataclass(frozen=True)
class _Indexed:
    """Gives indexes to a dataset; called again each time another commit came first."""

    place: IndexPlace  # for files of indexes
    names: tuple[str, ...]
    # Column -> its index in the last attempt, its type, and the files in the index.
    known: dict[str, tuple[ColumnIndex, pa.DataType, pa.Table]] = field(default_factory=dict)

    def __call__(self, base: Snapshot | None, attempt: int) -> Snapshot:
        base = _present(base, self.names)
        indices = indices_of(base)
        for name in self.names:
            if name not in indices:  # else another commit has built it meanwhile
                indices[name] = self._index(base, name)
        metadata, suppressed = base.metadata, _suppressed(base)
        if suppressed.intersection(self.names):
            metadata = {**metadata, SUPPRESS_INDEX_ON: sorted(suppressed.difference(self.names))}
        return replace(with_indices(base, indices), metadata=metadata)

    def _index(self, base: Snapshot, name: str) -> ColumnIndex:
        """The index of all files; those that the last attempt has read are not read again."""
        store, column, files = self.place.store, base.schema.field(name), base.files
        large = name in base.large_columns
        known, t, read = self.known.get(name, (None, None, None))
        if known is None or read is None or t != column.type:
            index = self.place.build(
                name, column.type, pairs_of_files(store, base, files, column), large=large
            )
        else:
            is_read = _are_among(files, read)
            new = pairs_of_files(store, base, files.filter(pc.invert(is_read)), column)
            if known.segments is not None:
                added = self.place.segments(column.type, new)
                index = ColumnIndex(segments=(*known.segments, *added))
            else:
                old = pairs_of_index(store, known, column.type, files.filter(is_read))
                index = self.place.build(name, column.type, chain(old, new), large=large)
        self.known[name] = index, column.type, files.select(["label", "position"])
        return index


def _are_among(files: pa.Table, others: pa.Table) -> pa.BooleanArray:
    """Tell which files are among others, under the same number."""
    at = pc.index_in(files["label"], value_set=others["label"].combine_chunks())
    same = pc.equal(
        others["position"].combine_chunks().take(at.combine_chunks()), files["position"]
    )
    return pc.fill_null(same, False).combine_chunks()


def _present(base: Snapshot | None, names: Sequence[str]) -> Snapshot:
    """Give a dataset, or raise a `CommitConflictError` if it or one of the columns is gone."""
    if base is None:
        raise CommitConflictError("The dataset was removed meanwhile. Nothing was committed.")
    lost = [n for n in names if n not in base.schema.names or n in base.partition_keys]
    if lost:
        raise CommitConflictError(
            f"Dataset {base.uuid} was rebuilt meanwhile and can no longer have an index on "
            f"{', '.join(lost)}. Nothing was committed."
        )
    return base
