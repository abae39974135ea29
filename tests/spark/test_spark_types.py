"""Types of Spark that no file can hold are judged in Spark's schema, nested too."""

from __future__ import annotations

import pytest
from pyspark.ml.linalg import Vectors

from ktk_engine.errors import TypeClassError
from tests.support.changes import WriteRequest, build
from tests.support.spark import spark_version

POINT = "X'0101000000000000000000F03F0000000000000040'"
SINCE_40, SINCE_41 = (4, 0), (4, 1)
CASES = [
    ("'a' collate UTF8_LCASE", "string collate UTF8_LCASE", "cast(x as string)", SINCE_40),
    ("'a' collate UNICODE_CI_AI", "string collate UNICODE_CI_AI", "cast(x as string)", SINCE_40),
    ("parse_json('{\"a\": 1}')", "variant", "to_json(x)", SINCE_40),
    (f"st_geomfromwkb({POINT})", "geometry(0)", "st_asbinary(x)", SINCE_41),
    (f"st_geogfromwkb({POINT})", "geography(4326)", "st_asbinary(x)", SINCE_41),
    ("interval '1' day", "interval day", "cast(x as string)", (3, 5)),
    ("interval '1 2' day to hour", "interval day to hour", "cast(x as string)", (3, 5)),
    ("interval '1' month", "interval month", "cast(x as string)", (3, 5)),
    ("make_interval(1, 2, 3)", "interval", "cast(x as string)", (3, 5)),
]
WRAPPED = {
    "{}": "x",
    "array({})": "x[]",
    "named_struct('f', 1, 'g', {})": "x.g",
    "map('k', array({}))": "x{value}[]",
    "array(named_struct('m', map(1, {})))": "x[].m{value}",
}


@pytest.fixture(params=CASES, ids=[case[1] for case in CASES])
def case(request):
    value, name, fix, since = request.param
    if spark_version() < since:
        pytest.skip(f"Spark has {name} since {since}")
    return value, name, fix


@pytest.mark.parametrize("form", WRAPPED)
def test_are_refused_by_name_with_what_helps(spark, store, case, form):
    value, name, fix = case
    frame = spark.sql(f"select 1L as id, {form.format(value)} as x")
    with pytest.raises(TypeClassError) as error:
        build(store, frame, WriteRequest("t"))
    text = str(error.value)
    assert f"{name} has no type class" in text
    assert fix.replace("(x", f"({WRAPPED[form]}") in text
    assert "nothing was written" in text
    assert not list(store.list())


def test_what_is_advised_is_stored(spark, store, case):
    value, _, fix = case
    frame = spark.sql(f"select 1L as id, {fix.replace('x', value, 1)} as x")
    build(store, frame, WriteRequest("t"))


def test_all_columns_are_named_at_once(spark, store):
    frame = spark.sql("select 1L as id, interval '1' day as i, interval '1' month as j")
    with pytest.raises(TypeClassError, match="2 of 3 columns differ"):
        build(store, frame, WriteRequest("t"))


def test_types_of_users(spark, store):
    frame = spark.createDataFrame([(1, Vectors.dense([1.0, 2.0]))], ["id", "x"])
    for rows in (frame, frame.selectExpr("id", "array(x) as x")):
        with pytest.raises(TypeClassError, match="vector has no type class: only the program"):
            build(store, rows, WriteRequest("t"))


@pytest.mark.parametrize("text", ["cast('a' as char(3))", "cast('a' as varchar(3))", "'a'"])
def test_texts_stay_texts(spark, store, text):
    build(store, spark.sql(f"select {text} as x"), WriteRequest("t"))


def test_texts_of_the_default_collation(spark, store):
    if spark_version() < SINCE_40:
        pytest.skip("Spark has collations since 4.0")
    build(store, spark.sql("select 'a' collate UTF8_BINARY as x"), WriteRequest("t"))
