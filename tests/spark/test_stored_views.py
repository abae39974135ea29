"""Stored views as Spark gets them: others may have written their texts."""

from __future__ import annotations

import dataclasses
import os
import random
import re
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql.types import IntegerType, LongType, StringType

from ktk_engine import Store
from ktk_engine.errors import ConfigurationError, ConsistencyError, KtkError, QueryError
from ktk_engine.spark.compatibility import spark_version
from ktk_engine.sql.spark_functions import FUNCTIONS, OF_THE_READER, REFUSED
from ktk_engine.store.trust import Trust  # deep: what a profile names
from tests.support.changes import Constraint, WriteRequest, build
from tests.support.documents import ViewDocument, add_view
from tests.support.hostile_store import (
    build_store,
    documents,
    payloads,
    places,
    replace,
)
from tests.support.queries import FileAddress, StoreAddress, quote_identifier
from tests.support.random_cubes import TIMES
from tests.support.spark import SqlSession, is_connect
from tests.support.stored_texts import HIDDEN, PATHS, RUN, SETTINGS, WRITES
from tests.support.stores import LocalStore, Warehouse


@pytest.fixture
def other(tmp_path):
    """Somebody else's store, beside a folder that is none of its siblings."""
    store = LocalStore(tmp_path / "theirs" / "other")
    Store.of(store).write_table("t", pa.table({"a": [1, 2]}))
    Store.of(LocalStore(tmp_path / "theirs" / "sister")).write_table("u", pa.table({"b": [3]}))
    Store.of(LocalStore(tmp_path / "mine" / "secret")).write_table("s", pa.table({"c": [4]}))
    return store


@pytest.fixture
def session(sql, other, tmp_path):
    """A reader whose own warehouse is `home`, with the schema `an`."""
    home = Warehouse(tmp_path / "home")
    Store.of(home.create_schema("an")).write_table("t", pa.table({"a": [10]}))
    return SqlSession(sql.session, home.find_schema, sql.scratch, trust=home.trust)


def name_of(store, relation: str) -> str:
    return f"{quote_identifier(str(StoreAddress(str(store.root), relation)))}.x.y"


def view(store, text: str, name: str = "v") -> None:
    add_view(store, ViewDocument(name, "view", sql=text))


@pytest.mark.parametrize("is_own", [False, True])
@pytest.mark.parametrize("text", [*RUN, *PATHS, *SETTINGS])
def test_no_reader_runs_it(session, other, tmp_path, text, is_own):
    store = LocalStore(tmp_path / "home" / "an") if is_own else other
    view(store, text)
    for statement in (
        "select * from {}",
        "create or replace temporary view mine as select * from {}",
        "select 1 where exists (select * from {})",
    ):
        with pytest.raises(QueryError, match="A stored view may not do that"):
            session.sql(statement.format("an.v" if is_own else name_of(other, "v")))


@pytest.mark.parametrize("is_own", [False, True])
def test_a_command_leaves_no_trace(session, other, tmp_path, is_own):
    store = LocalStore(tmp_path / "home" / "an") if is_own else other
    marker = tmp_path / "ran"
    view(store, f"select transform (1) using 'sh -c \"touch {marker}; cat\"' as (x string)")
    view(store, "select * from v2", "v1")
    with pytest.raises(QueryError):
        session.sql(f"select * from {'an.v' if is_own else name_of(other, 'v')}").collect()
    assert not marker.exists()


@pytest.mark.parametrize("is_own", [False, True])
@pytest.mark.parametrize("text", WRITES)
def test_a_view_writes_nothing(session, other, tmp_path, monkeypatch, text, is_own):
    """Neither when our reader sees the command, nor if it did not."""
    store = LocalStore(tmp_path / "home" / "an") if is_own else other
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    view(store, text.replace("{}", str(tmp_path / "precious")))
    name = "an.v" if is_own else name_of(other, "v")
    with pytest.raises(QueryError, match="A stored view may not do that"):
        session.sql(f"select * from {name}")
    understand_nothing(monkeypatch)
    with pytest.raises((ParseException, AnalysisException)):
        session.sql(f"select * from {name}")
    assert (tmp_path / "precious" / "file").read_text() == "x"


def understand_nothing(monkeypatch) -> None:
    """Let each stored text pass, as if it named no relation and did nothing."""
    named = sys.modules["ktk_engine.plan.statement.named_relations"]  # deep: to fool it
    read = sys.modules["ktk_engine.sql.statement"].Statement
    monkeypatch.setattr(named, "stored_query", lambda view, sql, is_foreign: read(sql))


@pytest.mark.filterwarnings("ignore:The SQL config")
@pytest.mark.parametrize("setting", ["doubleQuotedIdentifiers", "escapedStringLiterals"])
def test_no_setting_becomes_a_row(session, other, monkeypatch, setting):
    """Whichever way a text may be spelled, Spark replaces nothing in it."""
    monkeypatch.setenv("MARK", "hunter2")
    room = "ansi" if setting.startswith("double") else "parser"
    session.session.conf.set(f"spark.sql.{room}.{setting}", "true")
    try:
        for text in ("'\\u0024{env:MARK}'", '"\\u0024{env:MARK}"', "'$' '{env:MARK}'"):
            view(other, f"select {text} as x")
            rows = session.sql(f"select * from {name_of(other, 'v')}").collect()
            assert rows[0][0] == "${env:MARK}"
        monkeypatch.setenv("HOME", "hunter2")
        understand_nothing(monkeypatch)
        for text in SETTINGS:
            view(other, text)
            try:
                assert "hunter2" not in str(session.sql(f"from {name_of(other, 'v')}").collect())
            except PySparkException as error:
                assert "hunter2" not in str(error)
    finally:
        session.session.conf.unset(f"spark.sql.{room}.{setting}")


def test_what_views_of_another_store_may_read(session, other, tmp_path):
    home, mine = str(tmp_path / "home/an"), str(tmp_path / "mine/secret")
    (tmp_path / "theirs" / "plain.csv").write_text("a\n1\n")
    Store.of(LocalStore(tmp_path / "theirs" / "CSV")).write_table("w", pa.table({"d": [5]}))
    view(other, "select * from other.t", "own")
    view(other, "select * from sister.u", "sister")
    view(other, f"select * from {name_of(LocalStore(home), 't')}", "home")
    view(other, "select * from other.own", "nested")
    for name, rows in (("own", [(1,), (2,)]), ("sister", [(3,)]), ("home", [(10,)])):
        found = session.sql(f"select * from {name_of(other, name)} order by 1").collect()
        assert [tuple(row) for row in found] == rows
    assert session.sql(f"select count(*) from {name_of(other, 'nested')}").first()[0] == 2
    session.session.sql("create or replace temporary view seen as select 1 as x")
    plain = FileAddress(str(tmp_path / "theirs/plain.csv"), "csv")
    for text, problem in (
        (f"select * from {name_of(LocalStore(mine), 's')}", f"the store at {mine}"),
        (f"select * from {quote_identifier(str(plain))}.x.y", "the files at .*plain.csv"),
        ("select * from seen", "reads seen, which is not in its store"),
        ("select * from sister.seen", "reads sister.seen, which is not in its store"),
        ("select * from `CSV`.plain", "reads CSV.plain, which is not in its store"),
        ("select * from `..`.t", "the store at .*/theirs/\\.\\."),
        ("select * from spark_catalog.default.seen", "which is not in its store"),
    ):
        view(other, text)
        with pytest.raises(QueryError, match=problem) as refused:
            session.sql(f"select * from {name_of(other, 'v')}")
        assert f"{other.root}.v reads" in str(refused.value)


def test_the_own_functions_of_a_session_are_not_for_others(session, other):
    session.session.udf.register("mine", lambda x: "ran", StringType())
    view(other, "select mine(a) as m from other.t")
    with pytest.raises(QueryError, match="calls `mine`, which is not among"):
        session.sql(f"select * from {name_of(other, 'v')}")
    view(other, "select upper('a') as m from other.t")
    session.session.udf.register("upper", lambda x: "ran", StringType())
    if spark_version() >= (4, 3):
        session.session.conf.set("spark.sql.path.enabled", "true")
        session.session.sql("set path = system.session, system.builtin, spark_catalog.default")
    try:
        with pytest.raises(QueryError, match="calls `upper`, which this session has defined"):
            session.sql(f"select * from {name_of(other, 'v')}")
    finally:
        if spark_version() >= (4, 3):
            session.session.sql("set path = default_path")
            session.session.conf.unset("spark.sql.path.enabled")
        session.session.sql("drop temporary function if exists upper")


def test_views_of_the_own_warehouse_call_functions_of_the_session(session, tmp_path):
    session.session.udf.register("mine", lambda x: x + 1, LongType())
    view(LocalStore(tmp_path / "home/an"), "select mine(a) as m from an.t")
    assert session.sql("select m from an.v").first()[0] == 11


def test_spark_opens_no_path_that_no_reader_has_found(session, other, monkeypatch):
    """Were a text understood otherwise than Spark does, it would still open nothing."""
    (other.root / "rows.csv").write_text("a\n1\n")
    path = f"csv.`{other.root}/rows.csv`"
    assert session.sql(f"select * from {path}").count() == 2
    view(other, f"select * from {path}")
    understand_nothing(monkeypatch)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql(f"select * from {name_of(other, 'v')}").collect()
    assert session.sql(f"select * from {path}").count() == 2


@pytest.mark.parametrize(
    "rule", ["reflect('java.lang.System', 'nanoTime') > a", "'${env:HOME}' = a"]
)
def test_a_stored_check_runs_no_program(spark, store, rule):
    rows = spark.range(1).selectExpr("id as a")
    with pytest.raises((QueryError, ConfigurationError), match="A stored condition may not"):
        build(store, rows, WriteRequest("t", constraints=(Constraint("check", expression=rule),)))


def test_each_function_of_spark_is_judged(spark):
    found = {row[0] for row in spark.sql("show functions").collect() if row[0].isidentifier()}
    assert found - FUNCTIONS - REFUSED - OF_THE_READER == set()
    assert not FUNCTIONS & (REFUSED | OF_THE_READER)
    if spark_version() >= (4, 3):
        assert (FUNCTIONS | REFUSED | OF_THE_READER) - found == set()


def test_a_column_is_no_setting(session, other):
    Store.of(other).write_table("w", pa.table({"${env:HOME}": [1]}))
    with pytest.raises(ConsistencyError, match=r"column `\$\{env:HOME\}`, which Spark reads as"):
        session.sql(f"select * from {name_of(other, 'w')}").collect()


def test_trusted_stores(sql, other, tmp_path):
    mine = LocalStore(tmp_path / "mine" / "secret")
    plain = tmp_path / "mine" / "plain.csv"
    plain.write_text("a\n1\n")
    address = quote_identifier(str(FileAddress(str(plain), "csv")))
    view(other, f"select * from {name_of(mine, 's')} join {address}.x.z")
    trust = Trust(stores=[str(tmp_path / "mine")])
    session = SqlSession(
        sql.session, Warehouse(tmp_path / "home").find_schema, sql.scratch, trust=trust
    )
    assert [
        tuple(row) for row in session.sql(f"select * from {name_of(other, 'v')}").collect()
    ] == [(4, 1)]


def test_each_text_of_the_documents_of_views(sql, tmp_path):
    """Whatever a document of a view or cube says, Spark runs nothing and reads nothing else."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("hunter2")
    template = build_store(tmp_path / "template" / "other")
    keys = [key for key in documents(template) if key.startswith(".ktk/view/")]
    every = [(key, place) for key in keys for place in places(template, key)]
    assert len(every) > 30
    texts = [(*item, *text) for item in every for text in payloads(outside).items()]
    for key, place, kind, text in random.Random(1).sample(texts, 80):
        shutil.copytree(tmp_path / "template", tmp_path / "wh", dirs_exist_ok=True)
        store = LocalStore(tmp_path / "wh" / "other")
        replace(store, key, place, text)
        session = SqlSession(sql.session, Warehouse(tmp_path / "home").find_schema, sql.scratch)
        name = key.rpartition("/")[2].removesuffix(".json")
        try:
            rows = session.sql(f"select * from {name_of(store, name)}").collect()
        except (KtkError, PySparkException) as error:
            assert "hunter2" not in str(error)
        else:
            assert "hunter2" not in str(rows), (key, place, kind)
        assert not (outside / "ran").exists(), (key, place, kind)


def trusting(session, root: Path) -> SqlSession:
    trust = dataclasses.replace(session.trust, stores=[str(root)])
    return SqlSession(session.session, session.open_schema, session.scratch, trust=trust)


@pytest.mark.parametrize("is_own", [False, True])
def test_no_path_is_checked_in_one_form_and_opened_in_another(session, other, tmp_path, is_own):
    """`..` behind a link leads elsewhere for the kernel than for those who shorten the text."""
    mine, shared = tmp_path / "mine" / "secret", tmp_path / "theirs"
    (mine / "a.csv").write_text("a\nprivate\n")
    deep = shared / "r" / "/".join("d" * len(shared.parts))
    deep.mkdir(parents=True)
    (shared / "link").symlink_to(deep)
    copy = Path(f"{shared}/r{mine}")
    copy.mkdir(parents=True)
    (copy / "a.csv").write_text("a\ndecoy\n")
    Store.of(LocalStore(copy)).write_table("s", pa.table({"c": [0]}))
    path = f"{shared}/link/{'/'.join(['..'] * len(shared.parts))}{mine}"
    assert os.path.realpath(path) == str(copy) and os.path.normpath(path) == str(mine)
    session = trusting(session, shared)
    store = LocalStore(tmp_path / "home" / "an") if is_own else other
    for address in (
        StoreAddress(path, "s"),
        StoreAddress("file://" + path.replace("..", "%2e%2e"), "s"),
        FileAddress(path + "/a.csv", "csv"),
        FileAddress("file:" + path + "/a.csv", "csv"),
        FileAddress(path + "/a.csv", "csv", (("pathGlobFilter", "{a.csv,x}"),)),
    ):
        view(store, f"select * from {quote_identifier(str(address))}.x.y")
        with pytest.raises(QueryError, match=r"v reads the (store|files) at"):
            session.sql(f"select * from {'an.v' if is_own else name_of(other, 'v')}").collect()


def test_a_view_by_a_link_reads_what_was_checked(session, other, tmp_path):
    (tmp_path / "theirs" / "a.csv").write_text("a\n1\n")
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    session = trusting(session, tmp_path / "theirs")
    for address in (
        StoreAddress(str(tmp_path / "link/other"), "t"),
        FileAddress(str(tmp_path / "link/a.csv"), "csv", (("header", "true"),)),
    ):
        name = f"{quote_identifier(str(address))}.x.y"
        view(other, f"select {name}.a from {name} where {name}.a = 1")
        assert session.sql(f"select * from {name_of(other, 'v')}").first()[0] == 1
    hostile = dataclasses.replace(address, options=(("fs.file.impl", "x"),))
    view(other, f"select * from {quote_identifier(str(hostile))}.x.y")
    with pytest.raises(QueryError, match=r"with the option `fs\.file\.impl`"):
        session.sql(f"select * from {name_of(other, 'v')}")


@pytest.fixture
def seen(session, other):
    """What a reader's session has besides its stores."""
    spark = session.session
    rows = spark.createDataFrame([("hunter2", 1)], "secret string, a int")  # no plan shows them
    rows.createOrReplaceTempView("seen")
    rows.createOrReplaceGlobalTempView("shown")
    spark.sql("create table default.tabled using parquet as select 'hunter2' as secret")
    spark.sql("declare or replace variable variable string default 'hunter2'")
    yield session
    spark.sql("drop temporary variable variable")
    spark.sql("drop table default.tabled")
    spark.sql("drop view global_temp.shown")
    spark.sql("drop view seen")


@pytest.mark.skipif(spark_version() < (4, 0), reason="declare variable is younger")
@pytest.mark.parametrize("text", HIDDEN)
def test_a_view_of_another_store_reads_nothing_of_the_session(seen, other, monkeypatch, text):
    view(other, text)
    for fooled in (False, True):
        if fooled:
            understand_nothing(monkeypatch)
        with pytest.raises((KtkError, PySparkException)) as error:
            seen.sql(f"select * from {name_of(other, 'v')}").collect()
        assert "hunter2" not in str(error.value)


def test_a_view_of_the_project_reads_no_temporary_view(seen, tmp_path):
    for text in ("select * from seen", "select * from global_temp.shown"):
        view(LocalStore(tmp_path / "home" / "an"), text)
        with pytest.raises(QueryError, match="only a temporary view of this session"):
            seen.sql("select * from an.v")
    for text in (
        "select * from (select 1) where, seen",
        "select * from an.t as where, seen",
        "select * from (select 1) where, global_temp.shown",
        "select '\\ncte [seen]\\n' as z, b.* from (select 1) where, seen b",
        "select b.* from (with seen as (select 1) select * from seen) a, (select 1) where, seen b",
    ):
        view(LocalStore(tmp_path / "home" / "an"), text)
        if not is_connect(seen.session):
            with pytest.raises(QueryError, match="that only this session has"):
                seen.sql("select * from an.v")
    view(LocalStore(tmp_path / "home" / "an"), "select * from spark_catalog.default.tabled")
    assert seen.sql("select * from an.v").first()[0] == "hunter2"
    view(LocalStore(tmp_path / "home" / "an"), "with seen as (select 3 as x) select x from seen")
    assert seen.sql("select * from an.v").first()[0] == 3


def test_no_view_names_a_view_of_ours(seen, other, monkeypatch):
    """Not even as a query of `with`, which Spark reads elsewhere as a relation."""
    seen.sql("select * from an.t").collect()
    text = (
        "select b.* from (with `{0}` as (select 1 as x) select * from `{0}`) a, (select 1) where, "
        "`{0}` b"
    )
    views = [row.name for row in seen.session.catalog.listTables() if row.isTemporary]
    (ours,) = (name for name in views if name.endswith("an.t"))
    for name, problem in ((ours, "begins with __ktk_"), ("__ktk_an.t", "begins with __ktk_")):
        view(other, text.format(name))
        with pytest.raises(QueryError, match=problem):
            seen.sql(f"select * from {name_of(other, 'v')}")
    understand_nothing(monkeypatch)
    view(other, text.format("__ktk_an.t"))
    with pytest.raises((QueryError, PySparkException)):
        seen.sql(f"select * from {name_of(other, 'v')}").collect()


USER_TYPE = (
    '{"type":"struct","fields":[{"name":"a","nullable":true,"metadata":{},"type":{"type":"udt",'
    '"pyClass":"tests.support.imported.Nothing","serializedClass":"","sqlType":"integer"}}]}'
)


@pytest.mark.parametrize("is_own", [False, True])
@pytest.mark.parametrize("call", ["from_json('{{\"a\":1}}', {})", "from_csv('1', {})"])
def test_a_view_imports_no_module(session, other, tmp_path, call, is_own):
    """A JSON schema may name a class, which Python would import to know the columns."""
    store = LocalStore(tmp_path / "home" / "an") if is_own else other
    for schema in (f"'{USER_TYPE}'", f"concat('{USER_TYPE[:40]}', '{USER_TYPE[40:]}')"):
        heading = "'== Optimized Logical Plan ==' as z"
        view(store, f"select array({call.format(schema)}) as x, {heading}")
        with pytest.raises((QueryError, PySparkException)):
            session.sql(f"select * from {'an.v' if is_own else name_of(other, 'v')}").collect()
        assert "tests.support.imported" not in sys.modules
    view(store, f"select {call.format(chr(39) + 'a int' + chr(39))}.a as x")
    assert session.sql(f"select * from {'an.v' if is_own else name_of(other, 'v')}").first()[0] == 1


def test_honest_views_of_another_store(seen, other):
    """Spark and our reader agree on what they read."""
    for text in (
        "with x as (select a from other.t), y as (select * from X) select max(a) as a from y",
        "select a from other.t where a in (select b - 1 from sister.u) union all select 3",
        "from other.t |> where a > 1 |> select a",
        "select sum(a) over w as a from other.t window w as (order by a)",
        "values (1), (2)",
        "table other.t",
        "select explode(array(a, 1)) as a from other.t lateral view explode(array(1)) as b",
        "with r(n) as (select 1 union all select 2) select n + 1 from r",
    ):
        view(other, text)
        assert seen.sql(f"select * from {name_of(other, 'v')}").count()


@pytest.mark.parametrize("word", ["offset", "extend", "sets", "cube", "minus", "escape"])
def test_a_function_of_the_session_with_the_name_of_a_word(session, other, word):
    ran = session.session.sparkContext.accumulator(0)
    session.session.udf.register(word, lambda value: ran.add(1) or value, StringType())
    try:
        view(other, f"select {word}('x')")
        with pytest.raises((QueryError, PySparkException)):
            session.sql(f"select * from {name_of(other, 'v')}").collect()
        assert not ran.value
    finally:
        session.session.sql(f"drop temporary function if exists {quote_identifier(word)}")


DEEP = [
    "select {}1{}".format("(" * 3_000, ")" * 3_000),
    "select " + "not " * 3_000 + "true",
    "select " + "- " * 3_000 + "1",
    "{}select 1{}".format("select * from (" * 3_000, ")" * 3_000),
    "select " + "case when true then " * 3_000 + "1" + " end" * 3_000,
    "select " + "array[" * 3_000 + "1" + "]" * 3_000,
    "select " + " || ".join(["'x'"] * 20_000),
    "select " + "a:" * 3_000 + "a",
    "select x -> " * 3_000 + "1",
    f"select cast(null as {'array<' * 3_000}int{'>' * 3_000})",
    f"select cast(null as {'struct<a: ' * 900}int{'>' * 900})",
    f"select a{'.b' * 5_000} from other.t",
    "with c0 as (select 1 as x)"
    + "".join(f", c{n} as (select x from c{n - 1})" for n in range(1, 400))
    + " select * from c399",
]


@pytest.mark.parametrize("number", range(len(DEEP)))
@pytest.mark.parametrize("is_own", [False, True])
def test_deep_nesting_is_an_error_of_ours(session, other, tmp_path, number, is_own):
    view(LocalStore(tmp_path / "home" / "an") if is_own else other, DEEP[number])
    with pytest.raises((QueryError, PySparkException)):
        session.sql(f"select * from {'an.v' if is_own else name_of(other, 'v')}")


def test_views_that_double_end(session, other, monkeypatch):
    monkeypatch.setattr(sys.modules["ktk_engine.spark.sql.sql_session"], "_MOST_VIEWS", 40)
    view(other, "select * from other.t", "v0")
    for number in range(1, 20):
        text = f"select * from other.v{number - 1} a cross join other.v{number - 1} b"
        view(other, text.replace("*", "a.a"), f"v{number}")
    assert session.sql(f"select * from {name_of(other, 'v3')}").count() == 2**8
    with pytest.raises(QueryError, match="more than 40 views"):
        session.sql(f"select * from {name_of(other, 'v19')}")


def test_no_folder_has_the_name_of_a_setting(session, tmp_path, monkeypatch):
    monkeypatch.setenv("MARK", "hunter2")
    Store.of(LocalStore(tmp_path / "theirs" / "${env:MARK}")).write_table("t", pa.table({"a": [1]}))
    with pytest.raises(QueryError, match="which Spark replaces"):
        session.sql(
            f"select nope from `ktk:{tmp_path}/theirs/%24%7Benv:MARK%7D?relation=t`.a.b"
        ).collect()


@pytest.mark.parametrize(
    "rule",
    [
        "a > 0 /* /*+ */ or (select max(value) from text.`{}`) = 'x' -- */ */\n and mine(a)",
        "raise_error((select max(value) from text.`{}`)) is null",
        "a > (select max(a) from seen)",
        "exists (from seen)",
        "a in (table seen)",
        "a in (values (1))",
        "a in (with x as (select 1) select * from x)",
        "mine(a) > 1",
        "input_file_name() = ''",
    ],
)
def test_a_stored_condition_only_computes_from_a_row(session, other, tmp_path, rule):
    (tmp_path / "secret.txt").write_text("hunter2")
    session.session.udf.register("mine", lambda value: value, IntegerType())
    session.session.sql("create or replace temporary view seen as select 1 as a")
    rows = session.session.createDataFrame([(1,)], "a int")
    constraint = Constraint("check", expression=rule.format(tmp_path / "secret.txt"))
    with pytest.raises(KtkError, match="A stored condition may not do that") as error:
        build(other, rows, WriteRequest("x", constraints=(constraint,)))
    assert "hunter2" not in str(error.value)
    session.session.sql("drop temporary function mine")


_KEYWORDS = """
    all and any array as asof between by case cast collate create cross cube current_date
    date delete desc distinct div drop else end escape except exclude exists extend extract
    false filter first for from full function grant group having if ignore in inner insert
    intersect interval into is join language lateral left like limit map merge minus natural
    not null of offset on or order outer over overlay overwrite partition pivot position
    qualify recursive reduce replace rollup row rows select semi set sets setminus some sort
    star stream table tablesample then time timestamp to transform trim true try_cast union
    unpivot using values version view when where window with within zone |> , ( ) -> as
"""
KEYWORDS = _KEYWORDS.split()
SHAPES = [
    "select A, B from t C",
    "select * from (select 1 as A) B, t",
    "select * from values (1), (2) A, t",
    "with A as (select 1 as B) select * from A join t C",
    "select (select max(A) from t) B from u where A in (select B from t)",
    "select * from t A lateral view explode(array(1)) B as C",
    "select * from (select 1) tablesample (1 rows) A, t",
    "from other.t |> where A > 1 |> extend 1 as B |> join u on true",
    "select extract(A from B) from t union all select A is distinct from B from u",
    "select A over B from t window B as (partition by C)",
    "select * from range(1) A, lateral (select B from t)",
    "select count(distinct A) from t group by A having B order by C limit 1 offset 2",
]


def test_spark_reads_what_our_reader_sees(session, sql, other):
    """In random texts, Spark finds only relations that our reader sees, or the view fails."""
    from py4j.protocol import Py4JJavaError  # which a client of Spark Connect has not

    rand, parsed = random.Random(2), 0
    rows = session.session.createDataFrame([("hunter2",)], "secret string")
    rows.createOrReplaceTempView("seen")
    for number in range(150 * TIMES):
        names = ["a"] if rand.random() < 0.5 else [*KEYWORDS, "a", "b"]
        tables = {"t": "other.t", "u": "sister.u"} if rand.random() < 0.7 else {"u": "seen"}
        words = re.findall(r"\w+|\S", rand.choice(SHAPES))
        words = [rand.choice(names) if word in "ABC" else word for word in words]
        words = [tables.get(word, "seen") if word in "tu" else word for word in words]
        for _ in range(rand.choice([0, 1, 1, 1, 2])):
            place = rand.randrange(1, len(words) + 1)
            words.insert(place, rand.choice([*KEYWORDS, "seen", "a"]))
        view(other, " ".join(words), f"v{number}")
        try:
            rows = session.sql(f"select * from {name_of(other, f'v{number}')}").collect()
        except (KtkError, PySparkException, Py4JJavaError) as error:
            assert "hunter2" not in str(error), words
            continue
        parsed += 1
        assert "hunter2" not in str(rows), words
    assert parsed > 10
