"""Rows stored in files, in blocks with known bounds.

A block is a row group with the bounds of its footer, or a part of one (`slices.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.conditions.condition import Condition, TrueCondition
from ktk_engine.conditions.may_match import may_match
from ktk_engine.files.data_file import read_row_groups
from ktk_engine.files.footers import row_group_footers, statistics_of
from ktk_engine.files.read_rows import MisfitError, in_containers, misfit
from ktk_engine.local.join_run import JoinRun
from ktk_engine.local.read.decoded_columns import DecodedColumns
from ktk_engine.local.task import TaskDataset, TaskFile
from ktk_engine.snapshot.snapshot import MAXIMUM_PREFIX, MINIMUM_PREFIX, NULLS_PREFIX

_Numbers: TypeAlias = "npt.NDArray[np.int64]"
_Flags: TypeAlias = "npt.NDArray[np.bool_]"


@dataclass(frozen=True)
class Blocks:
    """Blocks of rows of one file."""

    file: TaskFile
    numbers: tuple[int, ...]  # ascending
    rows: tuple[int, ...]  # of each block; of the last one perhaps only the first ones


class StoredRows(ABC):
    """Gives the stored rows of a task."""

    def __init__(self, run: JoinRun, keeps_alignment: bool) -> None:
        self.run, self.keeps_alignment = run, keeps_alignment

    @abstractmethod
    def blocks(self, item: TaskDataset, condition: Condition) -> tuple[Blocks, ...]:
        """Name the blocks of each file that may hold a row that fulfils a condition."""

    @abstractmethod
    def physical(self, blocks: Blocks, names: Sequence[str]) -> pa.Table:
        """Read columns of blocks in their stored types; the file has them all."""

    def read(self, blocks: Blocks, target: pa.Schema) -> pa.Table:
        """Read columns of blocks of one file, in containers; null where the file lacks a column."""
        self.run.check()
        names = self.stored_names(blocks.file, target)
        table = self.physical(blocks, names) if names else pa.table({})
        try:
            return in_containers(table, sum(blocks.rows), target, blocks.file.values)
        except MisfitError as error:
            raise misfit(self.run.store, blocks.file.key, error.column, error) from error

    def stored_names(self, file: TaskFile, target: pa.Schema) -> list[str]:
        """The columns that the file itself holds."""
        _, physical = self.run.footer(file)
        there = set(physical.names)
        return [
            field.name
            for field in target
            if field.name not in file.values and field.name in there and not pat.is_null(field.type)
        ]


class RowGroups(StoredRows):
    """Blocks that are row groups."""

    def __init__(self, run: JoinRun, shared: Collection[str] = ()) -> None:
        super().__init__(run, keeps_alignment=True)
        self._decoded = DecodedColumns(run, shared)

    def blocks(self, item: TaskDataset, condition: Condition) -> tuple[Blocks, ...]:
        """Name the row groups of each file that may hold a row that fulfils a condition."""
        rows = [row_counts(self.run, file) for file in item.files]
        counts = np.array([len(found) for found in rows], np.int64)
        may = np.array([count > 0 for found in rows for count in found], np.bool_)
        # The plan chose the only row group by its bounds already.
        if not isinstance(condition, TrueCondition) and len(may) > 1:
            may &= self._may_match(item, counts, condition)
        found, end = [], 0
        for file, sizes in zip(item.files, rows, strict=True):
            start, end = end, end + len(sizes)
            chosen = tuple(np.flatnonzero(may[start:end]).tolist())
            found.append(Blocks(file, chosen, tuple(sizes[number] for number in chosen)))
        return tuple(found)

    def _may_match(self, item: TaskDataset, counts: _Numbers, condition: Condition) -> _Flags:
        """Which row groups of a dataset may match; partition values are known exactly."""
        given = sorted(condition.columns & set(item.files[0].values))
        stored = sorted(condition.columns - set(given))
        footers = [
            footer
            for file in item.files
            for footer in row_group_footers(*self.run.footer(file), stored)
        ]
        bounds = statistics_of(footers, stored, item.schema)
        of_file = pa.array(np.repeat(np.arange(len(counts)), counts))
        values = {}
        for name in given:
            each = [file.values[name] for file in item.files]
            values[name] = pa.array(each, item.schema.field(name).type).take(of_file)
        found = may_match(
            condition,
            pa.table({**values, **{name: bounds[MINIMUM_PREFIX + name] for name in stored}}),
            pa.table({**values, **{name: bounds[MAXIMUM_PREFIX + name] for name in stored}}),
            pa.table({name: bounds[NULLS_PREFIX + name] for name in stored}),
            pa.array([footer.rows for footer in footers], pa.int64()),
        )
        flags: _Flags = found.to_numpy(zero_copy_only=False)
        return flags

    def physical(self, blocks: Blocks, names: Sequence[str]) -> pa.Table:
        """Read columns of row groups in their stored types."""
        run, file = self.run, blocks.file
        metadata, physical = run.footer(file)
        rows = sum(blocks.rows)
        if rows < sum(metadata.row_group(number).num_rows for number in blocks.numbers):
            return read_row_groups(
                run.store, file.key, metadata, physical, file.digest, names, blocks.numbers,
                run.use_threads, rows,
            )  # fmt: skip
        known = self._decoded.cached(file, blocks.numbers, names)
        left = [name for name in names if name not in known]
        if not left:
            return pa.table(known)
        table = read_row_groups(
            run.store, file.key, metadata, physical, file.digest, left, blocks.numbers,
            run.use_threads,
        )  # fmt: skip
        self._decoded.keep(file, blocks.numbers, table)
        return pa.table({**known, **{name: table[name] for name in left}})


def row_counts(run: JoinRun, file: TaskFile) -> list[int]:
    """Number of rows of each row group of a file."""
    run.check()
    metadata, _ = run.footer(file)
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
