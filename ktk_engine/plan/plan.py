"""A plan: which files of which datasets are read, and how they are joined; plain data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition, TrueCondition
from ktk_engine.plan.partial_aggregate import PartialAggregate
from ktk_engine.snapshot.snapshot import Snapshot

Join = Literal["seed", "inner", "left"]


@dataclass(frozen=True)
class PruneStep:
    """What one tier of pruning left over.

    Attributes:
        tier: `partitions`, `index`, `statistics` or `alignment`.
        files: number of files after it.
        reason: why it did nothing, empty if it did something or nothing was asked of it.
        rows: their stored rows, None if unknown.
        bytes: their size, None if unknown.
    """

    tier: str
    files: int
    reason: str = ""
    rows: int | None = None
    bytes: int | None = None

    def plus(self, other: PruneStep) -> PruneStep:
        """The same tier, which has left over what another one has seen, too."""
        return replace(
            self,
            files=self.files + other.files,
            rows=_plus(self.rows, other.rows),
            bytes=_plus(self.bytes, other.bytes),
        )


def _plus(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def prune_step(tier: str, files: pa.Table, reason: str = "") -> PruneStep:
    """Note what a tier left over.

    Args:
        tier: its name.
        files: the files that are left.
        reason: why it did nothing.
    """
    return PruneStep(tier, files.num_rows, reason, _total(files["rows"]), _total(files["bytes"]))


def total_step(snapshot: Snapshot) -> PruneStep:
    """Note what a dataset has."""
    return PruneStep("total", snapshot.file_table.num_rows, "", snapshot.rows, snapshot.bytes)


def unread_step(before: Snapshot, after: Snapshot) -> PruneStep:
    """Note what was left out unread: all files of segments, where one may have mattered.

    Args:
        before: a dataset.
        after: the same, narrowed.
    """
    rows, nbytes = (
        0 if before is after else _plus(old, None if new is None else -new)
        for old, new in ((before.rows, after.rows), (before.bytes, after.bytes))
    )
    files = before.file_table.num_rows - after.file_table.num_rows
    return PruneStep("unread", files, "", rows, nbytes)


def _total(values: pa.ChunkedArray) -> int | None:
    return None if values.null_count else int(pc.sum(values).as_py() or 0)


@dataclass(frozen=True)
class DatasetPlan:
    """How one dataset takes part.

    Attributes:
        dataset: its id within the cube.
        snapshot: the version that is read.
        files: the rows of `snapshot.files` to open, without statistics.
        columns: what to read from them.
        join: how it is joined; `seed` for the seed dataset itself.
        on: columns to join by.
        condition: which of its rows take part, evaluated before the join.
        overlaid: whether several files may hold one cell, of which the last one wins.
        cell_columns: what addresses a cell in it, to resolve overlays.
        distinct: the columns to which its rows are reduced before the join, one row each; empty
            if they are not.
        steps: what pruning did, in order.
    """

    dataset: str
    snapshot: Snapshot
    files: pa.Table
    columns: tuple[str, ...]
    join: Join
    on: tuple[str, ...]
    condition: Condition
    overlaid: bool
    cell_columns: tuple[str, ...]
    steps: tuple[PruneStep, ...] = ()
    distinct: tuple[str, ...] = ()

    @property
    def bytes(self) -> int | None:
        """Size of the files to open in bytes, None if unknown."""
        return _total(self.files["bytes"])

    @property
    def rows(self) -> int | None:
        """Stored rows of the files to open, None if unknown."""
        return _total(self.files["rows"])


@dataclass(frozen=True)
class Ignored:
    """A condition of a statement that prunes nothing, since the engine cannot evaluate it.

    Attributes:
        function: what is around the column: `cast`, `upper`, ...
        column: the column inside.
    """

    function: str
    column: str


@dataclass(frozen=True)
class Plan:
    """How a query of a cube is answered.

    Attributes:
        cube: the cube's name.
        version: version of its log that is read, 0 if it has none.
        columns: output columns, in order.
        datasets: the seed dataset first, then inner joins, then left joins, each by name.
        unread: ids of datasets that give neither a column nor a condition.
        condition: what is left to check after the joins.
        order_by: what addresses a row of the result, in the order by which rows are sorted where
            an order is asked for: dimensions, then partition columns.
        partition_by: columns whose values cut the result into groups, in order.
        distinct: whether dimensions are dropped after the joins: one row for each value of
            `order_by` and `partition_by`.
        ignored: conditions that Spark alone evaluates.
        partial_aggregate: how rows may be combined piece by piece without a change of the answer;
            None if they may not.
        limit: how many rows are asked for: the first by `order_by`; without that any of them. None
            means all.
    """

    cube: str
    version: int
    columns: tuple[str, ...]
    datasets: tuple[DatasetPlan, ...]
    unread: tuple[str, ...]
    condition: Condition
    order_by: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    distinct: bool = False
    ignored: tuple[Ignored, ...] = ()
    partial_aggregate: PartialAggregate | None = None
    limit: int | None = None

    @property
    def rows(self) -> int | None:
        """How many rows it gives, its limit aside; None if only reading can tell."""
        seed, *others = self.datasets
        reduced = self.distinct or seed.distinct or seed.overlaid
        conditions = [self.condition, *(item.condition for item in self.datasets)]
        chosen = any(not isinstance(each, TrueCondition) for each in conditions)
        if reduced or chosen or any(item.join == "inner" for item in others):
            return None
        return seed.rows
