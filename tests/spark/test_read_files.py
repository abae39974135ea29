"""Plain files as relations: what is in them arrives, and what is not there is an error."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine.errors import ConfigurationError, DatasetNotFoundError
from ktk_engine.spark.sql.read_files import read_files
from tests.support.queries import FileAddress


def read(spark, *args, **options):
    address = FileAddress(*args, **{key: tuple(value.items()) for key, value in options.items()})
    return [tuple(row) for row in read_files(spark, address, "raw.t").collect()]


def test_folders_keep_every_partition_value_as_text(spark, tmp_path):
    values = ["a/b", "100%", "x=y", "ö", "007", "true"]
    frame = spark.createDataFrame(list(enumerate(values)), "id bigint, p string")
    frame.write.partitionBy("p").parquet(str(tmp_path / "d"))
    found = read(spark, str(tmp_path / "d"), "parquet")
    assert sorted(found) == list(enumerate(values))


def test_parquet_keeps_unsigned_nan_and_nothing(spark, tmp_path):
    path = tmp_path / "a [b].parquet"
    large = 2**64 - 1
    pq.write_table(
        pa.table(
            {
                "u": pa.array([large, None], pa.uint64()),
                "f": [math.nan, None],
                "s": ["", None],
                "n": pa.nulls(2, pa.string()),
            }
        ),
        path,
    )
    (first, second) = read(spark, str(path), "parquet")
    assert (int(first[0]), first[2], first[3]) == (large, "", None)
    assert math.isnan(first[1])
    assert second == (None,) * 4


def test_csv_has_null_for_empty_cells_as_seeds_do_and_keeps_large_integers(spark, tmp_path):
    (tmp_path / "a.csv").write_text('s,i,b\n"",9007199254740993,true\n,2,false\n')
    assert read(spark, str(tmp_path / "*.csv"), "csv") == [
        (None, 9007199254740993, True),
        (None, 2, False),
    ]


def test_declared_types_win_by_name(spark, tmp_path):
    (tmp_path / "a.csv").write_text("i,s\n1,007\n")
    found = read(spark, str(tmp_path / "a.csv"), "csv", columns={"s": "string"})
    assert found == [(1, "007")]
    found = read(spark, str(tmp_path / "a.csv"), "csv", columns={"s": "int", "i": "string"})
    assert found == [("1", 7)]
    (tmp_path / "a.json").write_text(json.dumps({"i": 1, "s": 7}))
    found = read(spark, str(tmp_path / "a.json"), "json", columns={"s": "string"})
    assert found == [(1, "7")]


def test_options_are_sparks_in_any_case(spark, tmp_path):
    (tmp_path / "a.csv").write_text("1;2\n")
    options = {"Header": "false", "SEP": ";"}
    assert read(spark, str(tmp_path / "a.csv"), "csv", options=options) == [(1, 2)]


def test_files_with_other_headers_are_refused(spark, tmp_path):
    (tmp_path / "a.csv").write_text("i,s\n1,x\n")
    (tmp_path / "b.csv").write_text("s,i\ny,2\n")
    with pytest.raises(Exception, match="CSV header does not conform"):
        read(spark, str(tmp_path), "csv", columns={"i": "string", "s": "string"})


@pytest.mark.parametrize("location", ["nothing.csv", "*.csv", "empty"])
def test_where_nothing_is(spark, tmp_path, location):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetNotFoundError, match=r"Source raw\.t: there are no csv files at "):
        read(spark, str(tmp_path / location), "csv", columns={"a": "string"})


def test_columns_that_the_files_lack_are_named(spark, tmp_path):
    (tmp_path / "a.csv").write_text("amout\n1\n")
    with pytest.raises(ConfigurationError, match=r"no column amount.*Did you mean amout\?"):
        read(spark, str(tmp_path / "a.csv"), "csv", columns={"amount": "int"})
    said = r"no header and 1 columns, but 2 are declared with a data_type\. Declare all of them"
    with pytest.raises(ConfigurationError, match=said):
        options = {"header": "false"}
        columns = {"a": "int", "b": "int"}
        read(spark, str(tmp_path / "a.csv"), "csv", columns=columns, options=options)
