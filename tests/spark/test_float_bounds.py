"""NaN and signed zeros next to bounds: Spark skips no row group that holds what is asked for."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine.spark.frames import frame_of_table
from tests.support.changes import WriteRequest, build
from tests.support.dataset_builder import write_plain
from tests.support.documents import load_document

NAN, INF = math.nan, math.inf
GROUPS = [
    [1.5, 2.5, -3.0, NAN],
    [-0.0] * 4,
    [0.0, NAN, None, -0.0],
    [NAN] * 4,
    [None] * 4,
    [7.5] * 4,
]
FLOATS = [value for group in GROUPS for value in group]
TABLE = pa.table(
    {
        "id": pa.array(range(len(FLOATS)), pa.int64()),
        "f": pa.array(FLOATS, pa.float64()),
        "g": pa.array(FLOATS, pa.float32()),
        "s": pa.array([{"f": value} for value in FLOATS], pa.struct([("f", pa.float64())])),
    }
)
CONDITIONS = [
    "{} > 5",
    "{} >= 5",
    "{} < 2",
    "{} <= -3",
    "{} = 0.0D",
    "{} = -0.0D",
    "{} != 2.5",
    "{} = double('NaN')",
    "{} != double('NaN')",
    "{} > double('Infinity')",
    "{} in (0.0D, 7.5D)",
    "{} in (double('NaN'))",
    "{} not in (7.5D)",
    "not ({} < 2)",
    "not ({} <=> 7.5D)",
    "{} >= -0.0D",
    "{} <=> double('NaN')",
    "{} < 0.0D",
    "{} <= 0.0D",
    "{} is null",
    "{} is not null",
]


@pytest.fixture(params=["ours", "another program's", "another program's with dictionaries"])
def table(request, store):
    if request.param == "ours":
        build(store, TABLE, WriteRequest("t", row_group_rows=4))
    else:
        write_plain(store, "t", TABLE)
        (key,) = load_document(store, "t").partitions.values()
        dictionary = request.param.endswith("dictionaries")
        pq.write_table(TABLE, store.root / key, row_group_size=4, use_dictionary=dictionary)
    return store


def test_conditions_find_what_they_find_in_memory(sql, table):
    expected = frame_of_table(sql.session, TABLE)
    expected.createOrReplaceTempView("expected")
    columns = ("f", "g", "s.f")
    conditions = [template.format(column) for template in CONDITIONS for column in columns]
    found, right = (
        sql.sql(
            " union all ".join(
                f"select {number} as number, collect_list(id) as ids from {name} where {condition}"
                for number, condition in enumerate(conditions)
            )
        ).collect()
        for name in ("an.t", "expected")
    )
    assert _by_condition(found, conditions) == _by_condition(right, conditions)


def _by_condition(rows, conditions):
    return {conditions[row.number]: sorted(row.ids) for row in rows}


def test_only_row_groups_with_nan_lack_bounds(store):
    build(store, TABLE, WriteRequest("t", row_group_rows=4))
    (key,) = load_document(store, "t").partitions.values()
    with pq.ParquetFile(store.root / key, page_checksum_verification=True) as file:
        assert str(file.read().to_pydict()) == str(TABLE.to_pydict())
        metadata = file.metadata
    for number, group in enumerate(GROUPS):
        nan = any(value is not None and value != value for value in group)
        for column in (1, 2):
            chunk = metadata.row_group(number).column(column)
            assert chunk.statistics.null_count == group.count(None)
            assert chunk.statistics.has_min_max == (not nan and group != [None] * 4)
            assert chunk.has_column_index == (not nan)
        assert metadata.row_group(number).column(0).statistics.has_min_max
