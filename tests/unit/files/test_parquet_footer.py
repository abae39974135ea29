"""Footers without some bounds: all else is as Arrow wrote it."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.parquet as pq

from ktk_engine.files.parquet_footer import footer_without_bounds
from ktk_engine.files.write_job import WriteJob
from ktk_engine.files.write_table import write_table
from ktk_engine.format.parquet import bounds_of  # deep: the same bounds

WIDE = pa.table(
    {
        **{f"c{i}": pa.array([i, None, -i] * 7, pa.int64()) for i in range(40)},
        "text": ["a", "ü" * 300, None] * 7,
        "nested": [[{"a": 1.5, "b": [True]}], None, []] * 7,
        "map": pa.array([[("k", 1)], None, []] * 7, pa.map_(pa.string(), pa.int64())),
        "when": pa.array([0, 1, None] * 7, pa.timestamp("us", "UTC")),
        "f": pa.array([0.5, math.nan, None] * 7),
    }
)


def written(tmp_path, chunks):
    """A file whose footer was edited, as read back, and what its footer was before."""
    path, collected = tmp_path / "file.parquet", []
    with pa.OSFile(str(path), "wb") as sink:
        schema = WIDE.schema.with_metadata({"key": "value" * 100})
        options = {"write_page_index": True, "metadata_collector": collected}
        with pq.ParquetWriter(sink, schema, **options) as writer:
            writer.write_table(WIDE, row_group_size=1)
        sink.write(footer_without_bounds(collected[0], chunks))
    return pq.ParquetFile(path), collected[0]


def test_without_edits_nothing_changes(tmp_path):
    file, before = written(tmp_path, [])
    found, old = file.metadata.to_dict(), before.to_dict()
    assert {**found, "serialized_size": 0} == old
    assert file.metadata.metadata == before.metadata
    assert file.metadata.row_group(20).column(7).has_column_index


def test_only_the_named_bounds_go(tmp_path):
    edited = {(0, 0), (3, 39), (20, 40), (20, 41)}
    file, before = written(tmp_path, edited)
    for group in range(file.num_row_groups):
        for column in range(file.metadata.num_columns):
            found, old = (m.row_group(group).column(column) for m in (file.metadata, before))
            if (group, column) in edited:
                assert not found.statistics.has_min_max
                assert found.statistics.null_count == old.statistics.null_count
                assert not found.has_column_index and found.has_offset_index
            else:
                assert found.to_dict() == old.to_dict()
    assert str(file.read().to_pydict()) == str(WIDE.to_pydict())


def test_our_files_have_statistics_of_floats_but_no_bounds_beside_nan(store):
    values = [1.5, -0.0, math.nan, 2.0, None, None, math.nan, math.nan, 3.0]
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        column = pa.array(values, pa.float64()).cast(kind)  # older Arrow takes no float16
        table = pa.table({"f": column, "i": range(9)})
        job = WriteJob(store, "t", f"c{kind}", table.schema, row_group_rows=2)
        (key,) = write_table(table, job).keys
        with pq.ParquetFile(store.root / key) as file:
            chunks = [file.metadata.row_group(i).column(0) for i in range(5)]
            assert str(file.read()["f"].to_pylist()) == str(column.to_pylist())
        found = [(c.statistics.null_count, c.statistics.has_min_max) for c in chunks]
        assert found == [(0, True), (0, False), (2, False), (0, False), (0, True)]


def test_bounds_that_are_nan_say_nothing():
    """Writers that order NaN among the numbers put it into bounds; group by group."""

    class Group:
        has_null_count, has_min_max, null_count, num_values = True, True, 0, 3

        def __init__(self, low, high):
            self.min, self.max = low, high

    for groups in ([(1.0, 2.0), (math.nan, math.nan)], [(1.0, math.nan), (0.0, 1.0)]):
        statistics = [Group(*bounds) for bounds in groups]
        assert bounds_of(statistics, pa.float64()) == (None, None, 0)
