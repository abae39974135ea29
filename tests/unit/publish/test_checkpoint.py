"""Checkpoints of a Delta log that say more than their bytes can."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine.publish.delta.checkpoint import _SCHEMA, parse_checkpoint


@pytest.mark.parametrize("kinds", [("add", "txn"), ("metaData", "protocol")])
def test_more_rows_than_bytes_are_refused_by_the_footer(kinds):
    schema = pa.schema([_SCHEMA.field(kind) for kind in kinds])
    rows = pa.Table.from_arrays([pa.nulls(200_000, f.type) for f in schema], schema=schema)
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd", write_statistics=False)
    before = pa.total_allocated_bytes()
    with pytest.raises(ValueError, match="200,000 rows in"):
        list(parse_checkpoint(sink.getvalue().to_pybytes()))
    assert pa.total_allocated_bytes() - before < 1_000_000
