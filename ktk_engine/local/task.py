"""A task: one piece of a plan's work, plain data that can be sent to another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.conditions.condition import Condition
from ktk_engine.format.file_digest import FileDigest
from ktk_engine.local.cell_range import CellRange
from ktk_engine.plan.folding import Folding
from ktk_engine.plan.plan import Join

_VARIABLE_WIDTH = 32


@dataclass(frozen=True)
class TaskFile:
    """A data file to read.

    Attributes:
        key: where it lies.
        digest: what was recorded of it; None if nothing was.
        values: the partition values that only its path tells, by column, as Arrow gives them in
            Python.
        rows: how many rows it has.
    """

    key: str
    digest: FileDigest | None
    values: dict[str, Any]
    rows: int


@dataclass(frozen=True)
class TaskDataset:
    """How one dataset takes part in a task.

    Attributes:
        dataset: its id.
        files: what to read, in the order in which later files win over earlier ones.
        schema: the columns that are needed of it, in the types of their classes.
        join: how it is joined; `seed` for the seed dataset.
        on: columns to join by.
        condition: which of its rows take part.
        overlaid: whether several files may hold one cell, of which the last one wins.
        cell_columns: what addresses a cell in it.
        distinct: the columns to which its rows are reduced before the join; empty if they are not.
        shared: whether all tasks of the plan read the same few rows of it.
        aligned: whether each of its files holds the cells of the seed dataset's file at the same
            place, in the same order, as their digests say. Its own conditions are on cells only.
    """

    dataset: str
    files: tuple[TaskFile, ...]
    schema: pa.Schema
    join: Join
    on: tuple[str, ...]
    condition: Condition
    overlaid: bool
    cell_columns: tuple[str, ...]
    distinct: tuple[str, ...]
    shared: bool = False
    aligned: bool = False


@dataclass(frozen=True)
class Task:
    """A part of a plan's rows: all rows of some partitions, or a range of one partition.

    Attributes:
        datasets: the seed dataset first, then inner joins, then left joins.
        columns: output columns, in order.
        condition: what is left to check after the joins.
        distinct: the columns of which each combination of values gives one row; empty if all
            rows are given.
        range: which cells belong to the task, and what they can be cut by further.
        rows: about how many rows of the seed dataset belong to it.
        folding: how rows may be put together; None if they may not.
    """

    datasets: tuple[TaskDataset, ...]
    columns: tuple[str, ...]
    condition: Condition
    distinct: tuple[str, ...]
    range: CellRange
    rows: int
    folding: Folding | None = None

    @property
    def bytes(self) -> int:
        """About how many bytes its columns take in memory."""
        return self.rows * sum(row_width(item.schema) for item in self.datasets)

    @property
    def is_cut_by_rows(self) -> bool:
        """Whether its rows may be read in any pieces: no two of them have to come together."""
        (first, *others) = self.datasets
        reduced = first.overlaid or first.distinct or self.distinct
        return not reduced and all(item.aligned for item in others)

    @property
    def schema(self) -> pa.Schema:
        """The types of the output columns: those of the classes."""
        fields: dict[str, pa.Field] = {}
        for item in self.datasets:
            for field in item.schema:
                fields.setdefault(field.name, field)
        return pa.schema([pa.field(name, fields[name].type) for name in self.columns])


def row_width(schema: pa.Schema) -> int:
    """About how many bytes a row of some columns takes in memory."""
    width = 0
    for field in schema:
        width += max(field.type.bit_width // 8, 1) if is_fixed(field.type) else _VARIABLE_WIDTH
    return max(width, 1)


def is_fixed(t: pa.DataType) -> bool:
    """Tell whether each value of a type takes the same number of bytes."""
    return bool(pat.is_primitive(t) or pat.is_decimal(t))
