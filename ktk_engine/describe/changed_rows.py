"""Finds the rows that differ between two versions of a cube or table.

The files that only one version has say which cells may differ. These are read whole at both
versions, piece by piece, and compared. See docs/design/reading.md, What changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.conditions.condition import Condition, TrueCondition, conjunction
from ktk_engine.cube.discovery import visible_columns
from ktk_engine.describe.changed_files import (
    ChangedCells,
    DatasetVersion,
    Flags,
    all_changed,
    any_of,
    compare_files,
)
from ktk_engine.errors import LocalEngineError, QueryError
from ktk_engine.formatting import counted, size
from ktk_engine.gate.constraint import CONSTRAINTS, Constraint
from ktk_engine.local.answer import LocalEngine, plan_schema
from ktk_engine.local.cell_codes import Codes, cell_codes
from ktk_engine.local.cell_range import CellRange
from ktk_engine.local.join_run import arrow_limits, too_large
from ktk_engine.local.match import null_rows
from ktk_engine.local.ranges import cell_at, cell_starts
from ktk_engine.local.row_differences import RowDifferences, row_differences
from ktk_engine.local.sorted_rows import sorted_indices
from ktk_engine.local.tasks import decoded_bytes
from ktk_engine.plan.cube_query import CubeQuery, check_known, listed_names
from ktk_engine.plan.key_conditions import MAXIMUM_KEYS, bounds_of, key_conditions
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.plan_cube import LoadedCube
from ktk_engine.plan.plan_dataset import address_partitions
from ktk_engine.plan.plan_table import LoadedTable
from ktk_engine.snapshot.snapshot import PARTITION_PREFIX, Snapshot
from ktk_engine.types.type_class import MAX_WIDE_PRECISION, class_name, is_nested, role_problem

Loaded = LoadedCube | LoadedTable

_PIECE_BYTES = 256 * 1024 * 1024  # of the rows of both versions that are compared at once
_PIECES_IN_LIMIT = 8  # rows are copied a few times while they are compared
_SAMPLE = 20_000  # rows by which a large piece is cut
_CUT_COLUMNS = 2
_LARGE_SHARE = 0.5


@dataclass(frozen=True)
class Compared:
    """A column as it is compared."""

    name: str
    type: pa.DataType  # which holds the values of both versions
    before: bool  # whether the older version has it, with values that can be compared
    is_same: bool  # whether it has the same type in both


@dataclass(frozen=True)
class Version:
    """What is read of one version."""

    loaded: Loaded
    engine: LocalEngine
    columns: tuple[str, ...]  # those that are compared and that it has
    where: Condition
    main: DatasetVersion  # the table, or the seed dataset of a cube
    partitions: Codes  # the number of each of its files' partition; -1: it is not read

    def plan(self, kept: Flags, condition: Condition, columns: Sequence[str]) -> Plan | None:
        """Plan the reading of rows in some files of the main dataset; None without files."""
        if not kept.any():
            return None
        part = _without_index(self.main.snapshot.of_files(pa.array(kept)))
        query = CubeQuery(columns, conjunction([condition, self.where]))
        if isinstance(self.loaded, LoadedTable):
            return replace(self.loaded, snapshot=part).answer(query)
        found = {name: _without_index(item) for name, item in self.loaded.snapshots.items()}
        seed = self.loaded.specification.seed_dataset
        return replace(self.loaded, snapshots={**found, seed: part}).answer(query)

    def batches(
        self, kept: Flags, condition: Condition, columns: Sequence[str]
    ) -> tuple[Iterator[pa.RecordBatch], pa.Schema] | None:
        """Read rows in some files of the main dataset; None without files."""
        plan = self.plan(kept, condition, columns)
        if plan is None:
            return None
        batches = self.engine.batches(plan, columns, ordered=True)
        return batches, plan_schema(plan, columns)


def _without_index(snapshot: Snapshot) -> Snapshot:
    """A dataset without indexes: for ranges of cells they cost more than they say."""
    return replace(snapshot, indices={}, index_segments={})


@dataclass(frozen=True)
class ChangedRows:
    """The rows that differ between two versions; they are read piece by piece.

    Make one with `find_changed_rows`.
    """

    before: Version
    after: Version
    key: tuple[str, ...]  # by which rows of both versions are the same row; may be empty
    is_unique: bool  # whether no two rows of a version have the same key
    columns: tuple[Compared, ...]
    cells: tuple[ChangedCells, ...]  # of each dataset; none for a table
    notes: tuple[str, ...]  # what is not compared, or not as it was

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return pa.schema([pa.field(item.name, item.type) for item in self.columns])

    @property
    def versions(self) -> tuple[Version, Version]:
        """Both versions, the older one first."""
        return self.before, self.after

    @cached_property
    def files(self) -> tuple[DatasetVersion, ...]:
        """The datasets that are compared, and their files that differ."""
        sides = [side for item in self.cells for side in item.sides]
        return tuple(sides or [side.main for side in self.versions])

    @property
    def cost(self) -> str:
        """The files that differ, for people; empty if there are none."""
        files = [side.files for side in self.files]
        number = sum(item.num_rows for item in files)
        nbytes = sum(pc.sum(item["bytes"]).as_py() or 0 for item in files)
        return f"{counted(number, 'file')} of {size(nbytes)} differ" if number else ""

    @property
    def is_large(self) -> bool:
        """Whether more than half of all rows are in files that differ."""
        changed = sum(side.changed_rows or 0 for side in self.files)
        return changed > _LARGE_SHARE * sum(side.snapshot.rows or 0 for side in self.files)

    def pieces(self) -> Iterator[RowDifferences]:
        """Compare the rows piece by piece; rows with the same key are in one piece.

        Raises a `LocalEngineError` if rows with the same key do not fit into memory.
        """
        with ExitStack() as reading:
            for side in self.versions:
                reading.enter_context(side.loaded.state.reading())
            numbers = np.unique(np.concatenate([side.partitions for side in self.versions]))
            numbers = numbers[numbers >= 0]
            todo = [numbers] if len(numbers) else []
            while todo:
                chosen = todo.pop()
                flags = [np.isin(side.partitions, chosen) for side in self.versions]
                condition, few = self._condition(flags)
                needed = self._bytes(flags, condition)
                fits = few or needed <= self._most
                if not fits and len(chosen) > 1:
                    half = len(chosen) // 2
                    todo += [chosen[half:], chosen[:half]]
                elif fits and (whole := self._compared(flags, condition, self._most)):
                    yield whole
                else:
                    for part in self._cut(flags, condition, needed):
                        found = self._compared(flags, conjunction([condition, part]))
                        assert found is not None, "what does not fit raises"
                        yield found

    @property
    def _most(self) -> int:
        """The bytes in memory that the rows of a piece may take."""
        least = min(side.engine.limit for side in self.versions)
        return min(_PIECE_BYTES, least // _PIECES_IN_LIMIT)

    def _condition(self, flags: Sequence[Flags]) -> tuple[Condition, bool]:
        """A condition for the cells that may differ, and whether few others fulfil it."""
        changed = (side.main.changed[kept].all()
                   for side, kept in zip(self.versions, flags, strict=True))  # fmt: skip
        if not self.cells or all(changed):
            return TrueCondition(), False
        sides = [
            (side.main.snapshot.file_table, pa.array(kept))
            for side, kept in zip(self.versions, flags, strict=True)
        ]
        rows = sum(pc.sum(files.select(["rows"])["rows"].filter(kept)).as_py() or 0
                   for files, kept in sides)  # fmt: skip
        names = [n for n in sides[0][0].column_names if n.startswith(PARTITION_PREFIX)]
        whole = pa.concat_tables([files.select(names).filter(kept) for files, kept in sides])
        parts = [found for item in self.cells if (found := item.condition(whole, rows))]
        return any_of([part for part, _ in parts]), all(few for _, few in parts)

    def _bytes(self, flags: Sequence[Flags], condition: Condition) -> int:
        """About how many bytes the rows take in memory."""
        total = 0
        for side, kept in zip(self.versions, flags, strict=True):
            if plan := side.plan(kept, condition, side.columns):
                total += decoded_bytes(side.engine.store, side.engine.footers, plan)
        return total

    def _compared(
        self, flags: Sequence[Flags], condition: Condition, most: int | None = None
    ) -> RowDifferences | None:
        """Compare rows; None if those of a version exceed `most` bytes."""
        tables = []
        for side, kept in zip(self.versions, flags, strict=True):
            found = self._rows(side, kept, condition, most)
            if found is None:
                return None
            tables.append(found)
        with arrow_limits():
            found = row_differences(tables[0], tables[1], self.key)
        return found if self.is_unique else self._without_repeated(found)

    def _rows(
        self, side: Version, kept: Flags, condition: Condition, most: int | None
    ) -> pa.Table | None:
        read = side.batches(kept, condition, side.columns)
        if read is None:
            return self.schema.empty_table()
        found, used = [], 0
        for batch in read[0]:
            found.append(batch)
            used += batch.nbytes
            if used > (side.engine.limit if most is None else most):
                if most is not None:
                    return None
                cause = "rows with the same key, or without one"
                raise LocalEngineError(too_large(used, side.engine.limit, cause))
        rows = pa.Table.from_batches(found, read[1])
        columns = [
            rows[item.name].cast(item.type)
            if item.name in side.columns
            else pa.nulls(rows.num_rows, item.type)
            for item in self.columns
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _without_repeated(self, found: RowDifferences) -> RowDifferences:
        """Undo pairs whose key another row has that did not change."""
        if not self.key or not found.before.num_rows:
            return found
        names = list(self.key)
        keys = found.before.select(names).combine_chunks()
        bounds = bounds_of(keys) if keys.num_rows > MAXIMUM_KEYS else None
        repeated = np.zeros(keys.num_rows, np.bool_)
        for side in self.versions:
            condition = conjunction(key_conditions(side.loaded.schema, keys, bounds))
            read = side.batches(~side.main.changed, condition, names)
            for batch in read[0] if read else ():
                others = pa.Table.from_batches([batch]).cast(keys.schema).combine_chunks()
                own, theirs = cell_codes([keys, others]).parts
                repeated |= np.isin(own, theirs)
        return found.unpaired(repeated) if repeated.any() else found

    def _cut(self, flags: Sequence[Flags], condition: Condition, needed: int) -> list[Condition]:
        """Cut the rows of a large piece by ranges of their keys, or of other columns."""
        usable = [
            item.name
            for item in self.columns
            if item.is_same and (not self.key or item.name in self.key)
            and role_problem(item.type, "dimension") is None
        ][:_CUT_COLUMNS]  # fmt: skip
        cells = self._sample(flags, condition, usable) if usable else None
        if cells is None or not cells.num_rows:
            return [TrueCondition()]
        parts = needed // self._most + 1
        at = np.unique(np.linspace(0, cells.num_rows, parts + 1).astype(np.int64)[1:-1])
        cells = cells.take(pa.array(at)).combine_chunks()
        starts = np.flatnonzero(cell_starts(cells)).tolist() if cells.num_rows else ()
        edges = [cell_at(cells, place) for place in starts]
        ranges = zip([(), *edges], [*edges, ()], strict=True)
        columns = tuple(usable)
        return [CellRange(columns, low, high).condition(columns) for low, high in ranges]

    def _sample(
        self, flags: Sequence[Flags], condition: Condition, names: Sequence[str]
    ) -> pa.Table | None:
        """Some of the rows of the version that has more, sorted, without nulls and NaN."""
        sides = [
            (pc.sum(side.main.snapshot.file_column("rows").filter(pa.array(kept))).as_py() or 0, at)
            for at, (side, kept) in enumerate(zip(self.versions, flags, strict=True))
        ]
        rows, at = max(sides)
        read = self.versions[at].batches(flags[at], condition, names)
        every = rows // _SAMPLE + 1
        found = [
            batch.take(pa.array(np.arange(0, batch.num_rows, every)))
            for batch in (read[0] if read else ())
        ]
        if not found:
            return None
        cells = pa.Table.from_batches(found).combine_chunks()
        for name in names:
            if pat.is_floating(cells[name].type):
                cells = cells.filter(pc.invert(pc.is_nan(cells[name])))
        if (nulls := null_rows(cells)) is not None:
            cells = cells.filter(pa.array(~nulls))
        return cells.take(sorted_indices(cells, names))


def find_changed_rows(
    before: Loaded,
    after: Loaded,
    engines: tuple[LocalEngine, LocalEngine],
    key: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    where: tuple[Condition, Condition] = (TrueCondition(), TrueCondition()),
) -> ChangedRows:
    """Find the files that two versions do not have in common; no data is read yet.

    Args:
        before: the older version.
        after: the newer version, of the same kind.
        engines: what reads each of them.
        key: columns of a table that identify a row. None takes the dimensions of a cube or dataset
            of a cube, or else a key that is a constraint.
        columns: the columns that are compared besides the key; None means all.
        where: which rows of each version are looked at.

    Raises:
        QueryError: an unknown column, or versions that have no key in common.
    """
    if isinstance(before, LoadedCube) != isinstance(after, LoadedCube):
        raise QueryError(f"{_named(before)} and {_named(after)}: one is a cube, the other a table.")
    keys = [_key(item, key) for item in (before, after)]
    schemas = [item.schema for item in (before, after)]
    by_cells = bool(_cells_of(after)) or bool(_cells_of(before))
    if by_cells:
        _check_cells(before, after)
    chosen = keys[1] if by_cells or key is not None else _common_key(keys, schemas)
    compared, notes = _compared_columns(schemas, chosen, columns, _named(after))
    if others := [i.name for i in compared if i.name in chosen and not i.is_same]:
        raise QueryError(_other_keys(before, after, f"the type of {', '.join(others)} differs"))
    read = [
        tuple(i.name for i in compared if i.before),
        tuple(i.name for i in compared),
    ]
    cells: tuple[ChangedCells, ...] = ()
    if by_cells:
        cells = tuple(_changed_cells(before, after, read))
        mains = [_main(item, cells) for item in (before, after)]
        partitions = _partitions_of_cells(mains, cells, _within(after))
    else:
        mains = list(compare_files(_whole(before), _whole(after), None))
        partitions = _partitions_of_files(mains, chosen)
    sides = [
        Version(*items)
        for items in zip((before, after), engines, read, where, mains, partitions, strict=True)
    ]
    unique = by_cells or (bool(chosen) and all(_is_verified(i, chosen) for i in (before, after)))
    return ChangedRows(sides[0], sides[1], chosen, unique, compared, cells, notes)


def _named(loaded: Loaded) -> str:
    state = loaded.state
    return f"{state.scope} of {state.store.url} (version {state.version})"


def _within(loaded: Loaded) -> tuple[str, ...]:
    """The partition columns of a cell."""
    if isinstance(loaded, LoadedCube):
        return tuple(loaded.specification.partition_columns)
    return tuple(address_partitions(loaded.snapshot))


def _cells_of(loaded: Loaded) -> tuple[str, ...]:
    """What addresses a cell, in the order of the rows; empty for a table."""
    if isinstance(loaded, LoadedCube):
        dimensions = tuple(loaded.specification.dimension_columns)
    else:
        dimensions = loaded.snapshot.dimension_columns
    return (*_within(loaded), *dimensions) if dimensions else ()


def _key(loaded: Loaded, key: Sequence[str] | None) -> tuple[str, ...]:
    """The key of a version: given, by cells, or by a constraint; empty if it has none."""
    if cells := _cells_of(loaded):
        if key is not None:
            raise QueryError(f"{_named(loaded)} has a key already: {', '.join(cells)}.")
        return cells
    if key is not None:
        names = listed_names(_named(loaded), "key", key, loaded.schema.names)
        check_known(_named(loaded), names, loaded.schema.names)
        if nested := [name for name in names if is_nested(loaded.schema.field(name).type)]:
            raise QueryError(f"{_named(loaded)}: a key has no nested columns: {', '.join(nested)}.")
        return names
    keys = _verified_keys(loaded)
    return keys[0] if keys else ()


def _verified_keys(loaded: Loaded) -> list[tuple[str, ...]]:
    """The keys that each commit verifies, a primary key first."""
    if isinstance(loaded, LoadedCube):
        return []
    items = map(Constraint.of, loaded.snapshot.properties.get(CONSTRAINTS) or ())
    found = sorted((item for item in items if item.key), key=lambda i: i.kind != "primary_key")
    return [item.key for item in found if {*item.key} <= {*loaded.schema.names}]


def _is_verified(loaded: Loaded, key: Sequence[str]) -> bool:
    return any({*known} <= {*key} for known in _verified_keys(loaded))


def _common_key(keys: Sequence[tuple[str, ...]], schemas: Sequence[pa.Schema]) -> tuple[str, ...]:
    """The newer version's key if both have its columns, else the older one's, else none."""
    for found in (keys[1], keys[0]):
        if found and all(
            name in schema.names and schema.field(name).type == schemas[1].field(name).type
            for name in found
            for schema in schemas
        ):
            return found
    return ()


def _check_cells(before: Loaded, after: Loaded) -> None:
    """Refuse versions whose cells have other addresses."""
    old, new = _cells_of(before), _cells_of(after)
    if {*old} != {*new}:
        said = f"rows were addressed by {', '.join(old) or 'nothing'}, and now by {', '.join(new)}"
        raise QueryError(_other_keys(before, after, said))
    if {*_within(before)} != {*_within(after)}:
        said = (
            f"cells were partitioned by {', '.join(_within(before)) or 'nothing'}, and now by "
            f"{', '.join(_within(after)) or 'nothing'}"
        )
        raise QueryError(_other_keys(before, after, said))


def _other_keys(before: Loaded, after: Loaded, why: str) -> str:
    return (
        f"{_named(after)} cannot be compared with {_named(before)}: {why}. Versions with the same "
        "keys, of the same classes, can be compared."
    )


def _compared_columns(
    schemas: Sequence[pa.Schema], key: Sequence[str], columns: Sequence[str] | None, named: str
) -> tuple[tuple[Compared, ...], tuple[str, ...]]:
    """The columns to compare, and what to say about the others."""
    old, new = schemas
    names = tuple(new.names)
    if columns is not None:
        names = listed_names(named, "columns", columns, new.names)
        check_known(named, names, new.names)
    order = [*key, *(name for name in names if name not in key)]
    found = [_compared(old, new.field(name)) for name in order]
    gone = [name for name in old.names if name not in new.names] if columns is None else []
    notes = [f"column `{name}` is gone" for name in gone]
    for item in found:
        if item.name not in old.names:
            notes.append(f"column `{item.name}` is new")
        elif not item.is_same:
            classes = (class_name(schema.field(item.name).type) for schema in schemas)
            notes.append(f"column `{item.name}` was {' and is now '.join(classes)}")
            if not item.before:
                notes[-1] += ", so its values count as new"
    return tuple(found), tuple(notes)


def _compared(old: pa.Schema, field: pa.Field) -> Compared:
    """How a column is compared: in a type that holds its values in both versions, if there is."""
    name, new = field.name, field.type
    if name not in old.names:
        return Compared(name, new, False, False)
    t = old.field(name).type
    if t.equals(new):
        return Compared(name, new, True, True)
    if pat.is_null(t):
        return Compared(name, new, True, False)
    if pat.is_null(new):
        return Compared(name, t, True, False)
    if pat.is_decimal(new) and (pat.is_decimal(t) or pat.is_integer(t)):
        scale = max(new.scale, t.scale if pat.is_decimal(t) else 0)
        return Compared(name, pa.decimal256(MAX_WIDE_PRECISION, scale), True, False)
    return Compared(name, new, False, False)


def datasets_of(loaded: Loaded) -> dict[str, Snapshot]:
    """The datasets of a cube by id, or a table."""
    if isinstance(loaded, LoadedCube):
        return loaded.snapshots
    return {loaded.snapshot.uuid: loaded.snapshot}


def _whole(loaded: Loaded, dataset: str = "") -> DatasetVersion:
    snapshots = datasets_of(loaded)
    return all_changed(loaded.state.store, snapshots[dataset or next(iter(snapshots))])


def _changed_cells(
    before: Loaded, after: Loaded, columns: Sequence[Sequence[str]]
) -> Iterator[ChangedCells]:
    """The cells in files that differ, of each dataset that gives a compared column."""
    address = {*_cells_of(after)}
    sides = []
    for loaded, names in zip((before, after), columns, strict=True):
        found = {}
        for name, snapshot in datasets_of(loaded).items():
            payload = {*visible_columns(snapshot)} - address
            main = not isinstance(loaded, LoadedCube) or _is_seed(loaded, name)
            if main or payload & {*names}:
                within = tuple(n for n in _within(after) if n in snapshot.partition_keys)
                own = tuple(n for n in _cells_of(after) if n in snapshot.columns)
                found[name] = (within, tuple(n for n in own if n not in within))
        sides.append(found)
    for name in dict.fromkeys([*sides[0], *sides[1]]):
        forms = [side.get(name) for side in sides]
        versions = [
            _whole(loaded, name) if form is not None else None
            for loaded, form in zip((before, after), forms, strict=True)
        ]
        (old, new), (form, other) = versions, forms
        if (
            old
            and new
            and form
            and other
            and {*form[0]} == {*other[0]}
            and {*form[1]} == {*other[1]}
        ):
            yield ChangedCells(compare_files(old, new, form[0]), *form)
            continue
        for version, known in zip(versions, forms, strict=True):
            if version and known:
                yield ChangedCells((version,), *known)


def _is_seed(loaded: LoadedCube, name: str) -> bool:
    return name == loaded.specification.seed_dataset


def _main(loaded: Loaded, cells: Sequence[ChangedCells]) -> DatasetVersion:
    """The version of the dataset whose files make the partitions."""
    snapshot = next(iter(datasets_of(loaded).values()))
    if isinstance(loaded, LoadedCube):
        snapshot = loaded.snapshots[loaded.specification.seed_dataset]
    return next(s for item in cells for s in item.sides if s.snapshot is snapshot)


def _partitions_of_cells(
    mains: Sequence[DatasetVersion], cells: Sequence[ChangedCells], within: Sequence[str]
) -> list[Codes]:
    """Number the partitions in which cells may differ; -1 for the others."""
    found = cell_codes([side.partitions(within) for side in mains]).parts
    reached = [np.zeros(len(codes), np.bool_) for codes in found]
    for item in cells:
        tables = [item.partitions(), *(side.partitions(item.within) for side in mains)]
        changed, *own = cell_codes(tables).parts
        reached = [old | np.isin(codes, changed) for old, codes in zip(reached, own, strict=True)]
    return [np.where(flags, codes, -1) for flags, codes in zip(reached, found, strict=True)]


def _partitions_of_files(mains: Sequence[DatasetVersion], key: Sequence[str]) -> list[Codes]:
    """Number the partitions of a table's changed files, where a row never leaves its partition."""
    old, new = (
        {(name, side.snapshot.schema.field(name).type) for name in side.snapshot.partition_keys}
        for side in mains
    )
    stay = old == new and (not key or {name for name, _ in old} <= {*key})
    names = mains[0].snapshot.partition_keys if stay else ()
    found = cell_codes([side.partitions(names) for side in mains]).parts
    return [np.where(side.changed, c, -1) for side, c in zip(mains, found, strict=True)]
