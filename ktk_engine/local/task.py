"""A task: one part of a plan's work, plain data that can be sent to another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.conditions.condition import Condition
from ktk_engine.format.file_digest import FileDigest
from ktk_engine.local.cell_range import CellRange
from ktk_engine.plan.plan import Join, PartialAggregate

_VARIABLE_WIDTH = 32


@dataclass(frozen=True)
class TaskFile:
    """A data file to read."""

    key: str
    digest: FileDigest | None  # None if none was recorded
    values: dict[str, Any]  # partition values that only its path tells, as Python values of Arrow
    rows: int


@dataclass(frozen=True)
class TaskDataset:
    """How one dataset takes part in a task."""

    dataset: str
    files: tuple[TaskFile, ...]  # later files win over earlier ones
    schema: pa.Schema  # the needed columns, in the types of their classes
    join: Join
    on: tuple[str, ...]
    condition: Condition
    overlaid: bool  # whether several files may hold one cell, of which the last wins
    cell_columns: tuple[str, ...]  # the address of a cell
    # rows are reduced to these columns before the join; empty: they are not
    distinct: tuple[str, ...]
    shared: bool = False  # whether all tasks of the plan read the same few rows
    # whether digests say that each file holds the cells of the seed dataset's file at the same
    # place, in order; its own conditions are on cells only
    aligned: bool = False


@dataclass(frozen=True)
class Task:
    """A part of a plan's rows: all rows of some partitions, or a range of one partition."""

    datasets: tuple[TaskDataset, ...]  # the seed dataset, then inner joins, then left joins
    columns: tuple[str, ...]
    condition: Condition  # what remains to be checked after the joins
    distinct: tuple[str, ...]  # each combination of values gives one row; empty: all rows
    range: CellRange  # the task's cells, and the columns that can cut them further
    rows: int  # approximate number of seed rows
    partial_aggregate: PartialAggregate | None = None

    @property
    def bytes(self) -> int:
        """Approximate bytes of its columns in memory."""
        return self.rows * sum(row_width(item.schema) for item in self.datasets)

    @property
    def is_cut_by_rows(self) -> bool:
        """Whether its rows may be read in any pieces: none have to be combined."""
        (first, *others) = self.datasets
        reduced = first.overlaid or first.distinct or self.distinct
        return not reduced and all(item.aligned for item in others)

    @property
    def schema(self) -> pa.Schema:
        """The output columns in the types of their classes."""
        fields: dict[str, pa.Field] = {}
        for item in self.datasets:
            for field in item.schema:
                fields.setdefault(field.name, field)
        return pa.schema([pa.field(name, fields[name].type) for name in self.columns])


def row_width(schema: pa.Schema) -> int:
    """Approximate bytes per row in memory."""
    width = 0
    for field in schema:
        width += max(field.type.bit_width // 8, 1) if is_fixed(field.type) else _VARIABLE_WIDTH
    return max(width, 1)


def is_fixed(t: pa.DataType) -> bool:
    """Tell whether each value of a type takes the same number of bytes."""
    return bool(pat.is_primitive(t) or pat.is_decimal(t))
