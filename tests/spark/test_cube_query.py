"""Dimensions, groups and datasets of a query in Python."""

from __future__ import annotations

import datetime
import math

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import ConsistencyError, DatasetNotFoundError, QueryError
from tests.support.changes import WriteRequest, build
from tests.support.queries import is_in

DAYS = [datetime.date(2025, 1, 1), datetime.date(2025, 1, 2)]


@pytest.fixture
def cube(store):
    n = range(24)
    seed = pa.table(
        {
            "P": [i % 3 for i in n],
            "L": [i % 6 for i in n],
            "day": [DAYS[i // 12] for i in n],
            "M": [i // 6 for i in n],
            "k": [i % 2 for i in n],
            "f": [math.nan if i < 2 else -0.0 if i < 4 else 0.0 if i < 6 else 1.0 for i in n],
        }
    )
    target = WriteRequest("seed", "seed", "c", ("L", "day", "M"), ("P",), indexes=("k", "f"))
    build(store, seed, target)
    lines = pa.table({"P": [0, 1, 2], "L": [0, 1, 2], "name": ["zero", "one", "two"]})
    build(store, lines, WriteRequest("lines", "enrichment", "c", ("L",), ("P",), indexes=("name",)))
    return Store(store.root).cube("c")


def test_kartothek_s_form_of_a_result(spark, cube):
    table = cube.query(payload_columns=["name"], where="M = 0").to_arrow(spark)
    assert table.column_names == ["L", "M", "P", "day", "name"]
    assert table["L"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert cube.query(payload_columns="*").plan.columns == (
        "L", "M", "P", "day", "f", "k", "name",
    )  # fmt: skip


def test_fewer_dimensions(spark, cube):
    query = cube.query(where="M > 1", dimension_columns=["M"], payload_columns=[])
    assert query.to_arrow(spark).to_pylist() == [
        {"M": m, "P": p} for m in (2, 3) for p in (0, 1, 2)
    ]
    # The condition needs a dropped dimension after the join: rows are reduced after it.
    late = cube.query(["P", "L"], "M = 0 or name = 'one'", dimension_columns=["L"])
    assert late.plan.distinct
    assert late.to_arrow(spark).num_rows == 6
    with pytest.raises(QueryError, match="Cannot project dataset seed"):
        cube.query(["k"], dimension_columns=["L"])
    with pytest.raises(QueryError, match="did you mean `day`"):
        cube.query(dimension_columns=["days"])


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("P", [(0, 8), (1, 8), (2, 8)]),
        ("day", [(DAYS[0], 12), (DAYS[1], 12)]),
        ("k", [(0, 12), (1, 12)]),
        ("name", [("one", 4), ("two", 4), ("zero", 4)]),
    ],
)
def test_groups_are_exact_and_sorted(spark, cube, by, expected):
    query = cube.query(["L", "day"], partition_by=[by])
    collected = [(values[by], rows.num_rows) for values, rows in query.iter_groups(spark)]
    assert collected == expected
    assert [
        (values[by], rows.count()) for values, rows in query.iter_spark_groups(spark)
    ] == expected


def test_groups_of_floats(spark, cube):
    query = cube.query(["L"], partition_by=["f"])
    for groups in (query.iter_groups(spark), query.iter_spark_groups(spark)):
        found = list(groups)
        counts = [r.num_rows if isinstance(r, pa.Table) else r.count() for _, r in found]
        assert counts == [4, 18, 2]  # -0.0 is 0.0, NaN is larger than any number


def test_groups_need_an_index(cube):
    assert cube.query(["L"], partition_by=["L", "day"]).plan.partition_by == ("L", "day")
    with pytest.raises(QueryError, match="has no groups"):
        cube.query().iter_groups()


def test_a_subset_of_datasets(cube):
    assert cube.query(datasets=["seed"]).plan.unread == ()
    with pytest.raises(QueryError, match="has no column `name`"):
        cube.query(["name"], datasets=["seed"])
    with pytest.raises(DatasetNotFoundError, match="no dataset typo"):
        cube.query(datasets=["seed", "typo"])
    with pytest.raises(ConsistencyError, match="which cells exist"):
        cube.query(datasets=[])


def test_answers_keep_their_types(spark, cube):
    table = cube.query(["k", "day", "f"], "P = 2").to_arrow(spark)
    assert table.schema.types == [pa.int64(), pa.date32(), pa.float64()]
    frame = cube.query(["k"], "P = 2").to_pandas(spark)
    assert str(frame["k"].dtype) == "int64[pyarrow]"


def test_long_lists(spark, cube):
    schema = cube.schema
    for name, values, count in (
        ("L", range(3, 50_000), 12),
        ("k", range(1, 2_000), 12),
        ("name", [f"x{i}" for i in range(2_000)] + ["one"], 4),
    ):
        condition = is_in(name, schema.field(name).type, list(values))
        query = cube.query(["L", "name"], condition)
        assert query.to_arrow(spark).num_rows == count
        if name != "name":
            one = cube.query(["L"], condition, datasets=["seed"])
            assert one.to_arrow(spark).num_rows == count


def test_the_first_rows_are_the_same_in_spark(spark, cube):
    for question in (
        {"limit": 5},
        {"columns": ["name"], "where": "k = 1", "limit": 4},
        {"columns": ["P", "M"], "dimension_columns": ["M"], "limit": 3},
        {"limit": 0},
    ):
        query = cube.query(**question)
        whole = cube.query(**{**question, "limit": None}).to_arrow(engine="local")
        expected = whole.slice(0, question["limit"])
        for found in (query.to_arrow(spark), query.to_arrow(engine="local")):
            assert str(found.to_pylist()) == str(expected.to_pylist())
        assert query.count(spark) == query.to_spark(spark).count() == question["limit"]
        assert query.to_spark(spark).columns == expected.column_names


def test_the_first_rows_of_a_table_in_spark(spark, store):
    build(store, pa.table({"n": range(10)}), WriteRequest("t"))
    query = Store(store.root).table("t").query(where="n > 3", limit=2)
    assert query.to_arrow(spark).num_rows == query.count(spark) == 2
