"""The keys of new rows, which select the files that can hold matching rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition
from ktk_engine.plan.key_conditions import (
    MAXIMUM_KEYS,
    bounds_of,
    counted_keys,
    key_conditions,
)
from ktk_engine.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class NewKeys:
    """The distinct keys of new rows."""

    rows: DataFrame | pa.Table
    # By column. For a frame, more than `MAXIMUM_KEYS` of them mean: many, only bounds are known.
    values: pa.Table
    counts: pa.Array  # rows of each key

    @property
    def many(self) -> bool:
        """Whether there are more keys than are collected, so that only their bounds are known."""
        return self.values.num_rows > MAXIMUM_KEYS and not isinstance(self.rows, pa.Table)

    @property
    def row_count(self) -> int:
        """Number of new rows."""
        if not self.many:
            return int(pc.sum(self.counts).as_py() or 0)
        from ktk_engine.spark.write.aggregate import count_rows

        return count_rows(self.rows)

    def repeated(self) -> tuple[dict[str, object], int] | None:
        """A key without nulls that occurs in several rows, and in how many."""
        if self.many:
            from ktk_engine.spark.write.keys import repeated_key

            return repeated_key(self.rows, self.values.column_names)
        twice = pc.greater(self.counts, 1)
        values, counts = self.values.filter(twice), self.counts.filter(twice)
        for key, count in zip(values.to_pylist(), counts.to_pylist(), strict=True):
            if None not in key.values():
                return key, count
        return None

    def conditions(self, base: Snapshot) -> list[Condition]:
        """Conditions that every row of a dataset with one of the keys fulfils; other rows may."""
        if self.values.num_rows <= MAXIMUM_KEYS:
            return key_conditions(base.schema, self.values)
        if not self.many:
            return key_conditions(base.schema, self.values, bounds_of(self.values))
        from ktk_engine.spark.write.keys import key_bounds

        return key_conditions(base.schema, self.values, lambda key: key_bounds(self.rows, key))


def find_keys(rows: DataFrame | pa.Table, keys: Sequence[str]) -> NewKeys:
    """Collect the keys of new rows; one Spark job for a frame."""
    if isinstance(rows, pa.Table):
        return NewKeys(rows, *counted_keys(rows, keys))
    from ktk_engine.spark.write.keys import count_keys

    return NewKeys(rows, *count_keys(rows, keys, MAXIMUM_KEYS + 1))
