"""What decides about the rows of a node, without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dbt.adapters.ktk.materialize.computed_from import Work
from dbt.adapters.ktk.session.functions import Function
from dbt.adapters.ktk.session.sessions import Sessions
from ktk_engine import Store
from tests.support.stores import LocalStore, Warehouse


@pytest.fixture
def sessions(tmp_path) -> Sessions:
    Store.of(LocalStore(tmp_path / "an")).write_table("t", pa.table({"n": [1]}))
    return Sessions(Warehouse(tmp_path), {})


def work(
    sessions, code: str | bytes = "select n from an.t", hooks=(), settings=None, macros=(), **model
):
    config = model.pop("config", {})
    return Work(
        {"name": "m", "language": "sql", "config": config, **model},
        *(code, False, sessions, sessions.relations(), settings or {}, tuple(hooks), dict(macros)),
    )


def function(sessions, name: str, body: str, **config) -> str:
    node = {"name": name, "schema": "an", "alias": name, "language": "sql", "config": config}
    node["compiled_code"] = body
    made = Function(node, is_built=True)
    sessions.functions.note(made)
    return made.name


def changed(one: Work, other: Work) -> set[str]:
    """The parts that differ."""
    names = {*one.digests, *other.digests}
    return {name for name in names if one.digests.get(name) != other.digests.get(name)}


def test_it_is_known_and_the_same_each_time(sessions):
    assert work(sessions).unknown == {}
    assert changed(work(sessions), work(sessions)) == set()


@pytest.mark.parametrize(
    ("other", "part"),
    [
        ({"code": "select n  from an.t"}, "SQL"),
        ({"config": {"partition_by": ["n"]}}, "config partition_by"),
        ({"config": {"contract": {"enforced": True}}}, "config contract"),
        ({"config": {"sql_header": "set a = b"}}, "config sql_header"),
        ({"columns": {"n": {"data_type": "bigint"}}}, "columns"),
        ({"constraints": [{"type": "check"}]}, "constraints"),
        ({"batch": {"id": 1}}, "batch"),
        ({"settings": {"spark.sql.x": "1"}}, "parameters"),
        ({"hooks": ["create table x as select 1"]}, "on-run-start"),
        ({"macros": {"macro.p.snapshot_x": "{% macro ..."}}, "macros of snapshots"),
    ],
)
def test_what_decides_about_rows(sessions, other, part):
    assert changed(work(sessions), work(sessions, **other)) == {part}


@pytest.mark.parametrize(
    "config",
    [{"tags": ["a"]}, {"meta": {"a": 1}}, {"docs": {"show": False}}, {"skip_unchanged": "check"}],
)
def test_what_decides_nothing(sessions, config):
    assert changed(work(sessions), work(sessions, config=config)) == set()


def test_functions_of_the_project(sessions):
    """By their texts, also of those that they call; known if they say that they are."""
    inner = function(sessions, "inner", "n + 1", volatility="deterministic")
    outer = function(sessions, "outer", f"{inner}(n)", volatility="deterministic")
    code = f"select {outer}(n) from an.t"
    before = work(sessions, code)
    assert before.unknown == {}
    function(sessions, "inner", "n + 2", volatility="deterministic")
    assert changed(before, work(sessions, code)) == {f"function {inner}"}
    function(sessions, "inner", "n + rand()", volatility="deterministic")
    assert work(sessions, code).unknown == {
        "calls `rand`, which is not known to be deterministic": "in function an.inner"
    }
    function(sessions, "inner", "n + 1")
    (what,) = work(sessions, f"select {inner}(n) from an.t").unknown
    assert what.startswith("calls `an.inner`")


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"code": "select rand() as r from an.t"}, "calls `rand`"),
        ({"code": "select * from an.gone"}, "reads an.gone, which no store holds"),
        ({"code": "select * from somewhere"}, "reads somewhere, which no store holds"),
        ({"config": {"sql_header": "set x = current_date()"}}, "calls `current_date`"),
        ({"config": {"sql_header": "set spark.sql.ansi.enabled = false"}}, "its sql_header sets"),
        ({"code": "def model(dbt, session): ...", "language": "python"}, "it is a Python model"),
    ],
)
def test_what_is_unknown(sessions, other, what):
    assert next(iter(work(sessions, **other).unknown)).startswith(what)


def test_settings_of_this_machines_spark(sessions, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    before = work(sessions)
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.memory 2g\n")
    assert changed(before, work(sessions)) == {"spark-defaults.conf"}
    assert work(sessions).unknown == {}
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.session.timeZone Asia/Tokyo\n")
    assert [*work(sessions).unknown] == ["spark-defaults.conf sets how SQL is read"]


def test_a_python_model_that_says_that_it_is_deterministic(sessions):
    code = 'def model(dbt, session): return dbt.ref("t")\nrefs = {"t": "an.t"}\nsources = {}\n'
    said = {"language": "python", "config": {"deterministic": True}}
    found = work(sessions, code, **said)
    assert found.unknown == {}
    assert [str(place) for place in found.trace.places.values()] == ["an.t"]
    other = work(sessions, code.replace("return", "return  "), **said)
    assert changed(found, other) == {"code"}
    assert [*work(sessions, code.replace("an.t", "an.gone"), **said).unknown] == [
        "reads an.gone, which no store holds"
    ]


def test_what_a_view_is_checked_by(sessions, tmp_path):
    """Names and types in all that it reads; nothing if some of it is not known."""
    store = Store.of(LocalStore(tmp_path / "an"))
    before = work(sessions).of_view("select n from an.t")
    assert before == work(sessions).of_view("select n from an.t") != ""
    store.write_table("t", pa.table({"n": [2]}))
    assert work(sessions).of_view("select n from an.t") == before
    assert work(sessions).of_view("select n from an.t ") != before
    store.table("t").alter(add={"m": "bigint"})
    assert work(sessions).of_view("select n from an.t") != before
    assert work(sessions, "select * from an.gone").of_view("select 1") == ""
