"""The rows of a dataset that a write replaces, and the keys of the new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.plan.key_conditions import MAXIMUM_KEYS, key_conditions
from ktk_engine.plan.plan_dataset import plan_dataset
from ktk_engine.spark.read.plan_frame import plan_frame
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.write.aggregate import count_rows
from ktk_engine.spark.write.merge_rows import count_keys, key_bounds, repeated_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stored_rows(scanner: Scanner, base: Snapshot, files: pa.Table, version: int) -> int:
    """How many rows `rows_of` gives; where no cell is overlaid, the snapshot knows it."""
    plan = plan_dataset(replace(base, files=files), version)
    if plan.datasets[0].overlaid or files["rows"].null_count:
        return count_rows(plan_frame(scanner, plan))
    return int(pc.sum(files["rows"]).as_py() or 0)


def rows_of(scanner: Scanner, base: Snapshot, files: pa.Table, version: int) -> DataFrame:
    """The rows of some files, of each cell the last; all columns of the dataset."""
    return plan_frame(scanner, plan_dataset(replace(base, files=files), version))


@dataclass(frozen=True)
class NewKeys:
    """The keys of new rows.

    Attributes:
        rows: the new rows.
        values: the different keys, by column; more than `MAXIMUM_KEYS` stand for any number.
        counts: how many rows each of them has.
    """

    rows: DataFrame
    values: pa.Table
    counts: pa.Array

    @property
    def many(self) -> bool:
        """Whether there are so many that only their bounds are asked for."""
        return bool(self.values.num_rows > MAXIMUM_KEYS)

    @property
    def row_count(self) -> int:
        """Number of new rows."""
        return count_rows(self.rows) if self.many else int(pc.sum(self.counts).as_py() or 0)

    def repeated(self) -> tuple[dict[str, object], int] | None:
        """A key without nulls that occurs in several rows, and in how many."""
        if self.many:
            return repeated_key(self.rows, self.values.column_names)
        for values, count in zip(self.values.to_pylist(), self.counts.to_pylist(), strict=True):
            if count > 1 and None not in values.values():
                return values, count
        return None

    def conditions(self, base: Snapshot) -> list[Condition]:
        """What a row of a dataset fulfils that has one of the keys; fewer conditions are safe."""
        bounds = (lambda key: key_bounds(self.rows, key)) if self.many else None
        return key_conditions(base.schema, self.values, bounds)


def find_keys(rows: DataFrame, keys: Sequence[str]) -> NewKeys:
    """Collect the keys of new rows; one job."""
    return NewKeys(rows, *count_keys(rows, keys, MAXIMUM_KEYS + 1))
