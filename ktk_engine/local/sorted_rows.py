"""Sorts rows by their address and groups them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.files.row_order import is_strictly_ascending
from ktk_engine.local.take import take

Values: TypeAlias = dict[str, Any]

_AT = "__ktk_at"


def sorted_rows(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Sort rows ascending with null last; rows that are in order already are not copied."""
    if not columns or table.num_rows < 2 or is_strictly_ascending(table.select(list(columns))):
        return table
    return take(table, sorted_indices(table, columns))


def sorted_indices(table: pa.Table, columns: Sequence[str]) -> pa.Array:
    """Indices in order with null last; bools become numbers, as Arrow cannot sort them here."""
    keys = {}
    for number, name in enumerate(columns):
        values = table[name]
        keys[f"k{number}"] = values.cast(pa.int8()) if pat.is_boolean(values.type) else values
    names = [(name, "ascending") for name in keys]
    return pc.sort_indices(pa.table(keys), sort_keys=names)


def groups_of(
    table: pa.Table, columns: Sequence[str], names: Sequence[str]
) -> Iterator[tuple[Values, pa.Table]]:
    """Give the values and rows of each group, sorted with null last; rows keep their order.

    Null is a group and so is NaN; -0.0 is 0.0.
    """
    codes = pa.table({name: _codes(table[name].combine_chunks()) for name in columns})
    codes = codes.append_column(_AT, pa.array(range(table.num_rows), pa.int64()))
    groups = codes.group_by(list(columns), use_threads=False).aggregate(
        [(_AT, "list"), (_AT, "min")]
    )
    firsts = table.select(list(columns)).take(groups[f"{_AT}_min"])
    for number in sorted_indices(firsts, columns).to_pylist():
        rows = table.take(groups[f"{_AT}_list"][number].values)
        yield firsts.slice(number, 1).to_pylist()[0], rows.select(list(names))


def _codes(values: pa.Array) -> pa.Array:
    """Number distinct values; null is one of them, and -0.0 is 0.0."""
    if pat.is_floating(values.type):
        values = pc.add(values, 0.0)
    return pc.dictionary_encode(values, null_encoding="encode").indices
