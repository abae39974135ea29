"""What a user's function works with and returns: the session, the module, the rows."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from dbt.adapters.ktk.materialize.temporary_module import temporary_module
from ktk_engine.errors import DataError, TypeClassError
from ktk_engine.spark.sql.model_session import model_session
from ktk_engine.spark.write.table_frame import table_frame, types_beyond_spark
from ktk_engine.warehouse.returned_rows import returned_rows  # deep: what models return
from tests.support.changes import WriteRequest, build
from tests.support.committed import list_relations


def opened(sql) -> set[str]:
    return {item.dataset for plan in sql.plans for item in plan.datasets}


def test_a_statement_with_parameters_plans_its_cube(cube, sql):
    session = model_session(sql)
    by_name = session.sql("select sum(v) as s from an.c where k = :k", {"k": "k7"})
    assert by_name.collect() == [(24350,)]
    assert opened(sql) == {"seed"}
    by_place = session.sql("select c.L, c.f from an.c where c.L = ? and c.k like ?", [4, "k%"])
    assert by_place.collect() == [(4, 6.0)]
    assert opened(sql) == {"seed", "f"}
    assert session.table("an.c").count() == 1000


def test_a_session_reads_and_leaves_writing_to_spark(cube, sql):
    session = model_session(sql)
    before = list_relations(cube)
    for text in (
        "drop table an.seed",
        "drop view an.c",
        "insert into an.seed select 1, 2, 3, 'k'",
        "create table an.more as select 1 as x",
        "truncate table an.seed",
    ):
        with pytest.raises(AnalysisException):
            session.sql(text)
    assert list_relations(cube) == before
    assert session.sql("select count(*) from an.seed").collect() == [(1000,)]


def test_a_session_is_spark_s_otherwise(sql):
    session = model_session(sql)
    frame = session.createDataFrame([(1, "é")], "id bigint, name string")
    frame.createOrReplaceTempView("mine")
    assert session.table("mine").collect() == session.sql("select * from mine").collect()
    assert session.sql("select name from {f}", f=frame).collect() == [("é",)]
    assert type(session.newSession()) is not type(session)


def test_a_module_exists_for_a_block(spark):
    with temporary_module("models/x.py") as module:
        name = module.__name__
        text = "def twice(x): return inner(x) * 2\ndef inner(x): return x"
        exec(text, module.__dict__)
        assert sys.modules[name] is module and module.twice.__module__ == name
        assert spark.sparkContext.parallelize([1, 2]).map(module.twice).collect() == [2, 4]
    assert name not in sys.modules


ODD = pa.table(
    {
        "u": pa.array([0, 2**64 - 1, None], pa.uint64()),
        "text": pa.array(["", "Zürich", None]).dictionary_encode(),
        "nan": pa.array([float("nan"), -0.0, None]),
        "nothing": pa.nulls(3),
        "flag": [True, False, None],
        "at": pa.array([1, 2, None], pa.timestamp("ms", "Europe/Berlin")),
        "local": pa.array([1000, 2000, None], pa.timestamp("ns")),
        "price": pa.array([Decimal("1.50"), None, None], pa.decimal128(10, 2)),
        "parts": pa.array([[{"a": 1}], [], None]),
    }
)


def test_a_table_reaches_spark_with_its_values(sql):
    found = table_frame(sql.session, ODD).collect()
    first, second, third = (row.asDict(recursive=True) for row in found)
    assert (first["u"], second["u"]) == (0, Decimal(2**64 - 1))
    assert (first["text"], second["text"]) == ("", "Zürich")
    assert np.isnan(first["nan"]) and np.copysign(1, second["nan"]) == -1
    assert first["local"] == datetime(1970, 1, 1, 0, 0, 0, 1)
    assert (first["price"], first["parts"]) == (Decimal("1.50"), [{"a": 1}])
    assert set(third.values()) == {None}


def test_types_that_spark_lacks_are_named():
    assert types_beyond_spark(ODD.schema) == {
        "u": pa.uint64(),
        "at": pa.timestamp("ms", "Europe/Berlin"),
    }


def test_nanoseconds_are_refused_with_their_column(sql):
    table = pa.table({"t": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(DataError, match="Column t: "):
        table_frame(sql.session, table)


def test_what_pandas_has_as_missing_is_null():
    frame = pd.DataFrame(
        {
            "a": [1.5, np.nan],
            "b": pd.array([2**63, None], "UInt64"),
            "c": ["", None],
            "d": [pd.Timestamp("2020-01-01", tz="UTC"), pd.NaT],
        },
        index=[7, 3],
    )
    table = returned_rows(frame)
    assert table.to_pylist() == [
        {"a": 1.5, "b": 2**63, "c": "", "d": datetime(2020, 1, 1, tzinfo=UTC)},
        dict.fromkeys("abcd"),
    ]
    assert not table.schema.metadata


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "returned NoneType"),
        ([1], "returned list"),
        (pd.DataFrame({"k": [1], "v": [2]}).groupby("k").sum(), "has k in its index"),
        (pd.DataFrame({0: [1]}), "must be text, but one is 0"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "several columns `x`"),
        (pd.DataFrame([[1, 2, 3]], columns=["x", "a", "x"]), "several columns `x`"),
        (pa.table([[1], [2]], names=["x", "x"]), "Arrow table has several columns `x`"),
        (pd.DataFrame({"x": [1, "a"]}), "column x"),
        (pd.DataFrame({"x": [1j]}), "column x.*one type that Arrow has"),
    ],
)
def test_what_cannot_be_stored_is_refused(result, message):
    with pytest.raises(DataError, match=message):
        returned_rows(result)


def test_a_table_with_a_column_twice_is_refused(store):
    twice = pa.table([[1], [2]], names=["x", "x"])
    with pytest.raises(TypeClassError, match="the column occurs 2 times"):
        build(store, twice, WriteRequest("t"))
    assert not list_relations(store)
