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
from ktk_engine.describe.changed_files import (
    ChangedCells,
    DatasetVersion,
    Flags,
    any_of,
)
from ktk_engine.errors import LocalEngineError
from ktk_engine.formatting import counted, size
from ktk_engine.local.answer import LocalEngine, plan_schema
from ktk_engine.local.cell_codes import Codes, cell_codes
from ktk_engine.local.cell_range import CellRange
from ktk_engine.local.join_run import arrow_limits, too_large
from ktk_engine.local.match import null_rows
from ktk_engine.local.ranges import cell_at, cell_starts
from ktk_engine.local.row_differences import RowDifferences, row_differences
from ktk_engine.local.sorted_rows import sorted_indices
from ktk_engine.local.tasks import decoded_bytes
from ktk_engine.plan.cube_query import CubeQuery
from ktk_engine.plan.key_conditions import MAXIMUM_KEYS, bounds_of, key_conditions
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.plan_cube import LoadedCube
from ktk_engine.plan.plan_table import LoadedTable
from ktk_engine.snapshot.snapshot import PARTITION_PREFIX, Snapshot
from ktk_engine.types.type_class import role_problem

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
