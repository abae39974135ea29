"""Groups rows, and finds rows without a match; values are equal as in Spark.

NaN equals NaN and -0.0 equals 0.0, in every class that has an order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ktk_engine.conditions.condition import Condition
from ktk_engine.errors import LocalEngineError
from ktk_engine.local.cell_codes import cell_codes
from ktk_engine.local.sql.rows import EVERY, Computed, Rows
from ktk_engine.types.type_class import class_name, is_nested


def groups(
    rows: Rows, keys: Sequence[str], count: str, wanted: Callable[[npt.NDArray[np.int64]], Any]
) -> Computed:
    """Group rows by keys, with null as a value, and give the keys and a column `count`.

    `wanted` says for an array of counts which groups to keep. Raises a `LocalEngineError` if values
    of a key cannot be compared.
    """
    _check_comparable(rows.schema, keys)

    def compute() -> pa.Table:
        table = rows.read(keys).combine_chunks()
        (codes,) = cell_codes([table]).parts
        _, first, found = np.unique(codes, return_index=True, return_counts=True)
        kept = wanted(found)
        grouped = table.take(pa.array(first[kept]))
        return grouped.append_column(count, pa.array(found[kept], pa.int64()))

    fields = [rows.schema.field(key) for key in keys]
    return Computed(pa.schema([*fields, pa.field(count, pa.int64())]), compute)


@dataclass(frozen=True)
class Unmatched:
    """The rows whose key is not among the others; `check_keys` says whether keys are comparable."""

    rows: Rows
    others: Rows
    keys: Sequence[tuple[str, str]]  # pairs of columns that are compared
    nulls_match: bool  # whether null equals null; otherwise it equals nothing

    @property
    def schema(self) -> pa.Schema:
        """All columns of the rows."""
        return self.rows.schema

    def read(
        self, names: Sequence[str], condition: Condition = EVERY, most: int | None = None
    ) -> pa.Table:
        """See `Rows`."""
        needed = dict.fromkeys([*names, *(left for left, _ in self.keys)])
        table = self.rows.read(list(needed), condition)
        found = has_match(table, self.others, self.keys, self.nulls_match)
        return table.filter(pa.array(~found)).slice(0, most).select(list(names))

    def count(self, condition: Condition = EVERY) -> int:
        """See `Rows`."""
        return int(self.read([self.keys[0][0]], condition).num_rows)


def check_keys(rows: Rows, others: Rows, keys: Sequence[tuple[str, str]]) -> None:
    """Raise a `LocalEngineError` for keys of different classes, which Spark may convert."""
    _check_comparable(rows.schema, [left for left, _ in keys])
    for left, right in keys:
        found, other = rows.schema.field(left).type, others.schema.field(right).type
        if not found.equals(other):
            raise LocalEngineError(
                f"{left} is {class_name(found)} and {right} is {class_name(other)}: only Spark "
                "compares them."
            )


def has_match(
    table: pa.Table, others: Rows, keys: Sequence[tuple[str, str]], nulls_match: bool
) -> npt.NDArray[np.bool_]:
    """Say for each row of a table whether its key is among the others."""
    names = [f"k{number}" for number in range(len(keys))]
    left = pa.table([table[name] for name, _ in keys], names).combine_chunks()
    read = others.read(list(dict.fromkeys(name for _, name in keys)))
    right = pa.table([read[name] for _, name in keys], names).combine_chunks()
    wanted, offered = cell_codes([left, right]).parts
    found = np.isin(wanted, offered)
    if not nulls_match:
        for column in left.columns:
            found &= column.is_valid().to_numpy()
    return found


def _check_comparable(schema: pa.Schema, names: Sequence[str]) -> None:
    for name in names:
        t = schema.field(name).type
        if is_nested(t) or pa.types.is_null(t):
            raise LocalEngineError(f"{name} is {class_name(t)}: only Spark compares its values.")
