"""Which relation a name means: one rule for reads and writes, that of Spark."""

from __future__ import annotations

import re

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from ktk_engine.errors import KtkError
from tests.spark.statements_of_store import Statements

READS = {
    "select a from t": [(99,)],
    "select t.a from t where exists (select 1 from t)": [(99,)],
    "with x as (select * from t) select a from x": [(99,)],
    "show columns in t": [("a",), ("b",)],
    "describe t": [("a", "int", None), ("b", "string", None)],
    "select a from an.t": [(1,), (2,), (3,)],
    "select a from identifier('t')": [(99,)],
}
# A temporary view is not a table, so Spark refuses these.
WRITES = (
    "delete from t",
    "delete from t where a = 1",
    "update t set a = 7",
    "insert into t values (5)",
    "insert overwrite t values (5)",
    "insert into t (a) values (5)",
    "insert into t replace where a = 1 select 1",
    "from (select 5 as a) insert into t select a insert into an.u select a",
    "truncate table t",
    "merge into t using an.u on t.a = u.a when matched then delete",
    "alter table t add columns (z int)",
    "alter table t drop column a",
    "alter table t set tblproperties ('k' = 'v')",
    "comment on table t is 'x'",
    "comment on column t.a is 'x'",
    "analyze table t compute statistics for all columns",
    "show create table t",
)


@pytest.fixture
def statements(spark, tmp_path):
    found = Statements(spark, tmp_path)
    found.run("create table an.t (a int); insert into an.t values (1), (2), (3)")
    found.run("create table an.u (a int); insert into an.u values (1), (2)")
    yield found
    found.close()


@pytest.fixture
def shadowed(statements):
    statements.run("create temporary view t as select 99 as a, 'x' as b; use an")
    return statements


@pytest.mark.parametrize("text", READS)
def test_reads_see_the_temporary_view(shadowed, text):
    assert shadowed.rows(text) == READS[text]


@pytest.mark.parametrize("text", WRITES)
def test_writes_to_a_temporary_view_are_refused(shadowed, text):
    before = shadowed.versions()
    with pytest.raises((KtkError, PySparkException)):
        shadowed.run(text)
    assert shadowed.versions() == before
    assert shadowed.rows("select a from an.t") == [(1,), (2,), (3,)]


@pytest.mark.parametrize("use", ["use an; ", ""])
@pytest.mark.parametrize("text", WRITES)
def test_writes_to_a_global_temporary_view_are_refused(statements, text, use):
    statements.run("create or replace global temporary view g as select 99 as a, 'x' as b")
    before = statements.versions()
    with pytest.raises((KtkError, PySparkException)) as caught:
        statements.run(use + re.sub(r"\bt\b", "global_temp.g", text))
    if text.startswith(("delete", "update", "merge")):
        assert "global_temp.g: temporary views cannot be changed" in str(caught.value)
    assert statements.versions() == before


@pytest.mark.parametrize(
    "text",
    ["with x as (select 1 as a) delete from u where a in (select a from x)",
     "with x as (select 1 as a) update `U` set a = 2",
     "merge with schema evolution into u using t on t.a = u.a when matched then delete",
     "merge into u using t on u.a = (select 1) when matched then delete",
     "insert with schema evolution into u select 1", "insert into u garbage select 1",
     "update u set a", "truncate table u partition (a = 1)"],
)  # fmt: skip
def test_what_is_not_understood_of_a_table_in_use_is_refused_by_name(statements, text):
    before = statements.versions()
    with pytest.raises(KtkError) as qualified:
        statements.run(re.sub(r"(\bu\b|`U`)(?!\.)", "an.u", text))
    with pytest.raises(KtkError) as short:
        statements.run(f"use an; {text}")
    assert str(short.value).split()[0] == str(qualified.value).split()[0]
    statements.run("create temporary view u as select 99 as a")
    with pytest.raises((KtkError, PySparkException, Py4JJavaError)):  # Spark's, of its own view
        statements.run(text)
    assert statements.versions() == before


def test_new_relations_and_qualified_names_are_of_the_schema(shadowed):
    with pytest.raises(KtkError, match=r"an\.t exists"):
        shadowed.run("create table t (a int)")
    shadowed.run("create temporary view n as select 1 as a; create table n as select 5 as a")
    assert shadowed.rows("select a from an.n") == [(5,)]
    assert shadowed.rows("select a from n") == [(1,)]
    shadowed.run("drop view n")  # the temporary one, as in Spark
    assert shadowed.rows("select a from n") == [(5,)]
    shadowed.run("drop table n")
    assert "n" not in shadowed.names()
    shadowed.run("insert into u select a from t")
    assert shadowed.rows("select a from an.u") == [(1,), (2,), (99,)]
    shadowed.run("merge into u using t on u.a = t.a when matched then delete")
    assert shadowed.rows("select a from an.u") == [(1,), (2,)]
    shadowed.run("delete from u where a in (select a - 98 from t)")
    assert shadowed.rows("select a from an.u") == [(2,)]


def test_without_a_schema_in_use_a_name_of_one_part_is_sparks(statements):
    for text in ("delete from t", "truncate table t", "select * from t"):
        with pytest.raises((KtkError, PySparkException)):
            statements.run(text)
    assert statements.rows("select a from an.t") == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("select a from t", [(1,), (2,), (3,)]),
        ("select t.a from t", [(1,), (2,), (3,)]),
        ("with c as (select * from t), t as (select 7 as a) select c.a + t.a as a from c, t",
         [(8,), (9,), (10,)]),
        ("select a from (select * from u where a in (select a from t where a > 1)) as s", [(2,)]),
        ("select a from w", [(4,)]),
        ("select a from identifier('t') where a = 1", [(1,)]),
        ("select a from t version as of 2 where a = 1", [(1,)]),
        ("select a from an.t where a = 1 union all select a from `u` as x", [(1,), (1,), (2,)]),
        ("select count(*) as a from t, lateral (select 1 from u)", [(6,)]),
    ],
)  # fmt: skip
def test_a_stored_view_means_the_same_everywhere(statements, query, rows):
    statements.run("use an; create view w as select max(a) + 1 as a from t")
    statements.run(f"create or replace view v (a) as {query}")
    statements.run("create schema other; use other; create temporary view t as select 99 as a")
    statements.run("create temporary view u as select 98 as a")
    assert sorted(statements.run("select a from an.v")) == rows


@pytest.mark.parametrize("use", ["use an; ", ""])
@pytest.mark.parametrize("name", ["t2", "global_temp.g"])
def test_a_stored_view_over_a_temporary_one_is_refused(statements, use, name):
    statements.run("create temporary view t2 as select 1 as a")
    statements.run("create or replace global temporary view g as select 1 as a")
    with pytest.raises((KtkError, PySparkException), match=r"temporary|TEMP"):
        statements.run(f"{use}create view an.v as select * from (select * from {name})")
    assert "v" not in statements.names()


def test_a_view_that_was_stored_without_schemas_reads_its_own(statements):
    statements.store_view("v", "select a from t")
    statements.run("create temporary view t as select 99 as a")
    assert statements.rows("select a from an.v") == [(1,), (2,), (3,)]


@pytest.mark.parametrize("text", ["show create table u", "show partitions u"])
def test_a_command_of_sparks_on_a_name_without_schema_is_refused_with_advice(statements, text):
    with pytest.raises(KtkError, match=r"its catalog lacks an\.u"):
        statements.run(f"use an; {text}")
