"""Takes rows of a table, whatever the length of its texts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

BATCH_ROWS = 131_072
BATCH_BYTES = 32 * 1024 * 1024


def take(table: pa.Table, at: pa.Array) -> pa.Table:
    """Give rows by position; null gives a row of nulls.

    Columns with more than 2 GB of text come in Arrow's large types.
    """
    try:
        return table.take(at)
    except pa.ArrowInvalid:  # beyond 32-bit offsets
        large = pa.schema([field.with_type(_large(field.type)) for field in table.schema])
        if large.equals(table.schema):
            raise
        return table.cast(large).take(at)


def batches_of(
    table: pa.Table, schema: pa.Schema, most_rows: int, most_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Cut rows into batches, so that none has 2 GB of text; casts large types back."""
    width = table.nbytes // max(table.num_rows, 1) + 1
    rows = max(min(most_rows, most_bytes // width), 1)
    for start in range(0, table.num_rows, rows):
        part = table.slice(start, rows)
        if not part.schema.equals(schema):
            # A slice keeps its large offsets, and Arrow does not narrow offsets beyond 2 GB.
            part = part.take(pa.array(np.arange(part.num_rows))).cast(schema)
        yield from part.to_batches()


def in_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give rows the types that they should have; see `batches_of`."""
    if table.schema.equals(schema):
        return table
    return pa.Table.from_batches(batches_of(table, schema, BATCH_ROWS, BATCH_BYTES), schema)


def _large(t: pa.DataType) -> pa.DataType:
    if pat.is_string(t):
        return pa.large_string()
    return pa.large_binary() if pat.is_binary(t) else t
