import pyarrow as pa
import pytest

from ktk_engine.spark.read.spark_parses_partition_values import spark_parses_partition_values

NULL = "__HIVE_DEFAULT_PARTITION__"
RIGHT = {
    pa.string(): ["01", "a%2Fb", "a%20b", "a=b", "a%3Db", "a:b", "ü", "nan", "%0A", "..", "%2E"],
    pa.int8(): ["0", "-5", "01"],
    pa.uint64(): ["18446744073709551615"],
    pa.float32(): ["0.1", "1e-07", "-0.0"],
    pa.bool_(): ["True", "False", "true"],
    pa.date32(): ["2018-01-01"],
    pa.timestamp("us"): ["2018-01-01%2010%3A00%3A00", "2018-01-01 10:00:00.000001", "2018-01-01"],
    pa.timestamp("us", "UTC"): ["2018-01-01%2010%3A00%3A00%2B01%3A00"],
    pa.decimal128(5, 2): ["1.20", "-0.00"],
    pa.decimal128(5, 0): ["12"],
}
WRONG = {
    pa.string(): ["", "%C3%BC", "a/b", NULL, "%zz", "a%", "%4"],
    pa.int64(): ["", "1.0", "x", NULL, "1%00"],
    pa.uint8(): ["-1"],
    pa.float64(): ["", "1e%2B20", "nan", "inf", "-inf", "1d"],
    pa.bool_(): ["", "1"],
    pa.date32(): ["", "2018-01-01%2000%3A00%3A00"],
    pa.timestamp("us"): ["", "2018-01-01 10:00:00.000000001", "2018-01-01 10:00:00+01:00"],
    pa.timestamp("us", "UTC"): ["2018-01-01 10:00:00"],
    pa.decimal128(5, 2): ["1.2", "1", "1E%2B2"],
    pa.binary(): ["a", ""],
    pa.time64("us"): ["10:00:00"],
    pa.list_(pa.int64()): ["1"],
}


@pytest.mark.parametrize("t", RIGHT, ids=str)
def test_right(t):
    assert spark_parses_partition_values(pa.array(RIGHT[t]), t).to_pylist() == [True] * len(
        RIGHT[t]
    )


@pytest.mark.parametrize("t", WRONG, ids=str)
def test_wrong(t):
    assert spark_parses_partition_values(pa.array(WRONG[t]), t).to_pylist() == [False] * len(
        WRONG[t]
    )
