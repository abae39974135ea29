"""Groups rows, and finds those that other rows lack; values are equal as they are in Spark.

NaN equals NaN and -0.0 equals 0.0, of every class that has an order.
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
    """Group rows by columns; null is a value like others.

    Args:
        rows: any rows.
        keys: the columns.
        count: name of the column with the number of rows of each group.
        wanted: says of these numbers which groups are kept.

    Returns:
        The keys and the number.

    Raises:
        LocalEngineError: a column has no values that can be compared.
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
    """The rows whose key no other row has.

    Attributes:
        rows: any rows.
        others: the other rows; `check_keys` says whether the keys can be compared.
        keys: columns of both that are compared.
        nulls_match: whether null equals null; otherwise it equals nothing.
    """

    rows: Rows
    others: Rows
    keys: Sequence[tuple[str, str]]
    nulls_match: bool

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
    """Refuse to compare columns of different classes, which Spark may convert.

    Raises:
        LocalEngineError: names the columns.
    """
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
    """Say of each row whether another row has its key.

    Args:
        table: rows with at least the columns on the left.
        others: the other rows.
        keys: see `Unmatched`.
        nulls_match: see `Unmatched`.
    """
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
