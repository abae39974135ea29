"""Declared types: what the writer stores, what Spark reads back, and what does not fit."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine.errors import DataError, TypeClassError
from tests.spark.times import needs_times
from tests.support.changes import WriteRequest, build
from tests.support.committed import check, snapshot_of
from tests.support.queries import parse_type
from tests.support.stores import tree
from tests.support.voices import DBT

U64 = Decimal(2**64 - 1)
BERLIN = "timestamp[us, tz=Europe/Berlin]"

# Declared type, the model's SQL, the stored Arrow type, what Spark reads.
CASES = [
    ("uint8", "cast(255 as decimal(3, 0))", "uint8", Decimal(255)),
    ("uint16", "65535", "uint16", Decimal(65535)),
    ("uint32", "cast(4294967295 as bigint)", "uint32", Decimal(4294967295)),
    ("uint64", f"cast({U64} as decimal(20, 0))", "uint64", U64),
    ("int8", "cast(-128 as bigint)", "int8", -128),
    ("bigint", "cast(7 as int)", "int64", 7),
    ("int", "cast(7 as bigint)", "int32", 7),
    ("float32", "0.5D", "float", 0.5),
    ("float16", "0.5D", "halffloat", 0.5),
    ("double", "cast(0.5 as float)", "double", 0.5),
    ("date", "date'2020-02-29'", "date32[day]", dt.date(2020, 2, 29)),
    pytest.param(
        *("time", "time'12:30:00.000001'", "time64[us]", dt.time(12, 30, 0, 1)), marks=needs_times
    ),
    ("decimal(5,2)", "cast(1.5 as decimal(10, 2))", "decimal128(5, 2)", Decimal("1.50")),
    ("list<uint8>", "array(1, null, 255)", "list<item: uint8>", [1, None, 255]),
    ("list<int8>", "array(1L, 2L)", "list<item: int8>", [1, 2]),
    (
        "dictionary<string>",
        "'a'",
        "dictionary<values=string, indices=int32, ordered=0>",
        "a",
    ),
    (BERLIN, "timestamp'2020-07-01 10:00:00'", BERLIN, dt.datetime(2020, 7, 1, 10)),
    ("timestamp[us]", "timestamp_ntz'2020-07-01'", "timestamp[us]", dt.datetime(2020, 7, 1)),
    ("struct<b: uint8, a: float32>", "named_struct('a', 1D, 'b', 2)", None, {"a": 1.0, "b": 2}),
    ("map<string, uint8>", "map('k', 3)", None, {"k": 3}),
]


@pytest.mark.parametrize(("declared", "sql_value", "stored", "read"), CASES)
def test_it_is_stored_and_read_back(spark, sql, store, declared, sql_value, stored, read):
    target = WriteRequest("seed", "seed", "c", ("L",), ("P",), declared={"v": parse_type(declared)})
    frame = spark.sql(f"select 0 as P, 0 as L, {sql_value} as v union all select 0, 1, null")
    build(store, frame, target)
    snapshot = snapshot_of(store, "c++seed")
    file = pq.read_schema(store.root / snapshot.files["key"][0].as_py()).field("v").type
    expected = parse_type(declared) if stored is None else stored
    assert _text(file) == _text(expected)
    rows = sql.sql("select v from an.seed order by L").collect()
    found = rows[0].v.asDict() if hasattr(rows[0].v, "asDict") else rows[0].v
    assert found == read
    assert rows[1].v is None
    assert check(store, "c").problems == ()
    # What Spark gives back goes in again without a word, for the class is committed.
    if "timestamp[us, tz" not in declared:
        build(
            store,
            sql.sql("select * from an.seed"),
            WriteRequest("seed", "seed", "c", ("L",), ("P",)),
        )


def _text(t) -> str:
    """Names of nested fields are Parquet's choice."""
    return re.sub(r"(element|item): | \('\w+'\)", "", str(t))


def _name(value: object) -> str | None:
    """The declared type, and not what else a case has."""
    return None


@pytest.mark.parametrize(
    ("declared", "sql_value", "example"),
    [
        ("uint8", "cast(id - 1 as decimal(20, 0))", "-1"),
        ("uint8", "id - 1", "-1"),
        ("uint64", "id - 1", "-1"),
        ("uint8", "id + 255", "256"),
        ("int8", "id + 127", "128"),
        ("float32", "id + 0.1D", "0.1"),
        ("float16", "id * 70000D", "70000.0"),
        ("decimal(3,1)", "cast(id * 100 as decimal(10, 1))", "100.0"),
        ("list<uint8>", "array(1, id - 1)", "[1, -1]"),
        ("map<string, int8>", "map('k', id + 127)", "[('k', 128)]"),
        ("struct<a: float32>", "named_struct('a', id + 0.1D)", "{'a': 0.1}"),
        (
            "timestamp[s]",
            "timestamp_ntz'2020-01-01' + make_dt_interval(0, 0, 0, id / 2)",
            "datetime",
        ),
    ],
)
def test_values_that_do_not_fit_are_counted(spark, store, declared, sql_value, example):
    target = WriteRequest("t", declared={"v": parse_type(declared)})
    with pytest.raises(DataError, match="nothing was committed") as error:
        build(store, spark.range(2).selectExpr("id", f"{sql_value} as v"), target)
    assert f" a value in `v` that its type, {parse_type(declared)}" in str(error.value)
    assert f"Example: {example}" in str(error.value)
    assert tree(store.root) == {}


def _name(value: object) -> str | None:
    """The declared type, and not what else a case has."""
    return None


@pytest.mark.parametrize(
    ("declared", "sql_value", "fix"),
    [
        ("uint8", "1.5D", "cast(v as decimal(20,0))"),
        ("float32", "1", "cast(v as double)"),
        ("date", "timestamp_ntz'2020-01-01'", "cast(v as date)"),
        ("string", "1", "cast(v as string)"),
        ("decimal(5,2)", "cast(1 as decimal(5, 1))", "cast(v as decimal(38,2))"),
        (BERLIN, "timestamp_ntz'2020-01-01'", "cast(v as timestamp)"),
        ("list<uint8>", "array('a')", "cast(v as array<decimal(20,0)>)"),
    ],
)
def test_another_class_is_refused_with_the_cast_that_helps(spark, store, declared, sql_value, fix):
    target = WriteRequest("t", declared={"v": parse_type(declared)})
    with pytest.raises(TypeClassError, match="declared as another class") as error:
        build(store, spark.sql(f"select 1 as id, {sql_value} as v"), target)
    assert DBT is None or fix in error.value.said(DBT)
    assert "table['v'].cast(pa." in str(error.value)
    assert tree(store.root) == {}
    fixed = fix.replace("(v as", f"({sql_value} as")
    if "array" not in fix:
        build(store, spark.sql(f"select 1 as id, {fixed} as v"), target)


def test_an_enrichment_takes_an_unsigned_dimension_over(spark, sql, store):
    seed = WriteRequest("seed", "seed", "c", ("L",), ("P",), declared={"L": pa.uint32()})
    build(store, spark.range(4).selectExpr("id % 2 as P", "id as L", "id as v"), seed)
    frame = sql.sql("select P, L, cast(L as double) as w from an.seed")
    build(store, frame, WriteRequest("extra", "enrichment", "c", ("L",), ("P",)))
    snapshot = snapshot_of(store, "c++extra")
    assert snapshot.schema.field("L").type == pa.uint64()
