"""A plan: which files of which datasets are read, and how they are joined; plain data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal, TypeAlias

import pyarrow as pa

from ktk_engine.conditions.condition import Condition, TrueCondition
from ktk_engine.snapshot.file_segments import total_of
from ktk_engine.snapshot.snapshot import Snapshot

Join = Literal["seed", "inner", "left"]

Fold: TypeAlias = Literal["sum", "min", "max"]


@dataclass(frozen=True)
class PartialAggregate:
    """One row of aggregates that may cover several rows.

    Readers may combine all rows, some or none: sums of sums are sums.
    """

    keys: tuple[str, ...]  # columns in which the rows are equal
    folds: tuple[tuple[str, Fold], ...]  # for each other column, its aggregate

    @property
    def columns(self) -> set[str]:
        """All columns."""
        return {*self.keys, *(name for name, _ in self.folds)}


@dataclass(frozen=True)
class PruneStep:
    """What one tier of pruning left."""

    tier: str  # `partitions`, `index`, `statistics` or `alignment`
    files: int  # left by it
    reason: str = ""  # why it did nothing, if it had something to do
    rows: int | None = None  # stored in these files; None: unknown
    bytes: int | None = None  # of these files; None: unknown

    def plus(self, other: PruneStep) -> PruneStep:
        """Add what the same tier left of other files."""
        return replace(
            self,
            files=self.files + other.files,
            rows=_plus(self.rows, other.rows),
            bytes=_plus(self.bytes, other.bytes),
        )


def _plus(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def prune_step(tier: str, files: pa.Table, reason: str = "") -> PruneStep:
    """Record what a tier left."""
    return PruneStep(
        tier, files.num_rows, reason, total_of(files["rows"]), total_of(files["bytes"])
    )


def total_step(snapshot: Snapshot) -> PruneStep:
    """Record what a dataset has."""
    return PruneStep("total", snapshot.file_table.num_rows, "", snapshot.rows, snapshot.bytes)


def unread_step(before: Snapshot, after: Snapshot) -> PruneStep:
    """Record the files of segments that were left out unread."""
    if before is after:
        return PruneStep("unread", 0, "", 0, 0)
    rows, nbytes = (
        _plus(old, None if new is None else -new)
        for old, new in ((before.rows, after.rows), (before.bytes, after.bytes))
    )
    files = before.file_table.num_rows - after.file_table.num_rows
    return PruneStep("unread", files, "", rows, nbytes)


@dataclass(frozen=True)
class DatasetPlan:
    """How one dataset takes part."""

    dataset: str  # its id within the cube
    snapshot: Snapshot
    files: pa.Table  # the rows of `snapshot.files` to open, without statistics
    columns: tuple[str, ...]  # to read from the files
    join: Join
    on: tuple[str, ...]  # columns to join by
    condition: Condition  # on its rows, before the join
    overlaid: bool  # several files may hold one cell; the last one wins
    cell_columns: tuple[str, ...]  # that address a cell in it, to resolve overlays
    steps: tuple[PruneStep, ...] = ()  # of pruning, in order
    # Columns to which its rows are reduced before the join, if they are.
    distinct: tuple[str, ...] = ()

    @property
    def bytes(self) -> int | None:
        """Size of the files to open in bytes, None if unknown."""
        return total_of(self.files["bytes"])

    @property
    def rows(self) -> int | None:
        """Stored rows of the files to open, None if unknown."""
        return total_of(self.files["rows"])


@dataclass(frozen=True)
class Ignored:
    """A condition of a statement that prunes nothing, since the engine cannot evaluate it."""

    function: str  # around the column: `cast`, `upper`, ...
    column: str


@dataclass(frozen=True)
class Plan:
    """How a query of a cube is answered."""

    cube: str
    version: int  # of its log; 0 if it has none
    columns: tuple[str, ...]  # the output columns in their order
    datasets: tuple[DatasetPlan, ...]  # the seed dataset, inner joins, left joins; each by name
    unread: tuple[str, ...]  # ids of datasets that give neither a column nor a condition
    condition: Condition  # left to check after the joins
    # What addresses a row of the result: dimensions, then partition columns, in sort order.
    order_by: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()  # columns whose values cut the result into groups, in order
    # Dimensions are dropped after the joins: one row for each value of `order_by` and
    # `partition_by`.
    distinct: bool = False
    ignored: tuple[Ignored, ...] = ()  # conditions for Spark alone
    # How rows may be combined piece by piece without changing the answer; None: not at all.
    partial_aggregate: PartialAggregate | None = None
    limit: int | None = None  # the first by `order_by`, or any without it; None: all
    # Types of columns that are read as files have them, not as their class has it.
    stored: Mapping[str, pa.DataType] = field(default_factory=dict)

    @property
    def compared(self) -> frozenset[str]:
        """The columns by which rows are found, joined and sorted."""
        parts = [self.order_by, self.partition_by, self.condition.columns]
        for item in self.datasets:
            parts += [item.on, item.cell_columns, item.condition.columns, item.distinct]
        return frozenset(chain(*parts))

    def fields_of(self, item: DatasetPlan, names: Collection[str]) -> list[pa.Field]:
        """Columns of a dataset in the types in which they are read, in its order."""
        wanted = set(names)
        return [
            found.with_type(self.stored.get(found.name, found.type))
            for found in item.snapshot.schema
            if found.name in wanted
        ]

    @property
    def rows(self) -> int | None:
        """How many rows it gives before its limit; None if only reading can tell."""
        seed, *others = self.datasets
        reduced = self.distinct or seed.distinct or seed.overlaid
        conditions = [self.condition, *(item.condition for item in self.datasets)]
        chosen = any(not isinstance(each, TrueCondition) for each in conditions)
        if reduced or chosen or any(item.join == "inner" for item in others):
            return None
        return seed.rows
