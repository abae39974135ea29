"""Takes rows of a table by position, however long its texts are."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat


def take(table: pa.Table, at: pa.Array) -> pa.Table:
    """Give rows by position; null gives a row of nulls.

    Args:
        table: any rows.
        at: their positions.

    Returns:
        The rows; where texts of more than 2 GB meet, these columns are of Arrow's large types.
    """
    try:
        return table.take(at)
    except pa.ArrowInvalid:  # offsets of 32 bits do not reach so far
        large = pa.schema([field.with_type(_large(field.type)) for field in table.schema])
        if large.equals(table.schema):
            raise
        return table.cast(large).take(at)


def _large(t: pa.DataType) -> pa.DataType:
    if pat.is_string(t):
        return pa.large_string()
    return pa.large_binary() if pat.is_binary(t) else t
