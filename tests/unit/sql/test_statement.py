"""Statements are read into plain data, without Spark."""

from __future__ import annotations

import time

import pytest

from ktk_engine.errors import QueryError
from ktk_engine.sql import commands as c
from ktk_engine.sql.statement import mentioned, read_statement
from ktk_engine.sql.token import simplified, split_statements, text_of, tokenize
from ktk_engine.types.identifier import Name  # deep: what statements name


def places(text):
    return [text[item.start : item.end] for item in read_statement(text).references]


@pytest.mark.parametrize(
    "before",
    ["replace(p, '\n', ' ')", r"replace(p, '\n', ' ')", "'a''b'", r"'\''", "r'\\'", '"\'"', "`'`",
     "1 /* ' /* */ ' */", "1 -- '\n", "1 -- \\\n from an.no\n", "'é😀'", "((1))",
     "/*+ f(an.no) */ 1"],
)  # fmt: skip
def test_relations_are_found_behind_anything(before):
    text = f"select {before} as x from an.t, `a n`.`u``v` w where y in (select 1 from an.v)"
    assert places(text) == ["an.t", "`a n`.`u``v`", "an.v"]
    command = f"create temporary view v as\n{text}"
    assert places(command) == places(text)
    assert read_statement(command).query == text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("with t as (select 1 from t) select * from t, T, an.t", ["t", "an.t"]),
        ("with a as (select 1), b as (select * from a) select * from b", []),
        ("select * from (with a as (select 1) select * from a) x, a", ["a"]),
        ("with recursive r as (select 1 union all select 2 from r) select * from r", []),
        ("with c as (select * from an.u) insert into an.t select * from c", ["an.u"]),
    ],
)
def test_names_of_queries_are_no_relations_where_they_are_known(text, found):
    assert places(text) == found


def test_versions():
    text = "select * from an.t version as of 3 x, an.u timestamp as of date '2026-01-01', an.v"
    found = read_statement(text).references
    assert [(item.version, item.timestamp, item.aliased) for item in found] == [
        ("3", "", True),
        (None, "DATE '2026-01-01'", False),
        (None, "", False),
    ]


def test_long_and_deep_statements_are_read_at_once():
    values = ", ".join(f"'value {i}'" for i in range(100_000))
    text = f"select * from an.t where x in ({values}) and y in (select y from an.u)"
    assert len(text) > 1_000_000
    start = time.process_time()
    assert places(text) == ["an.t", "an.u"]
    assert time.process_time() - start < 2
    deep = "(" * 5000 + "select 1 from an.u" + ")" * 5000
    assert places(f"select {deep} from an.t") == ["an.u", "an.t"]


def command(text):
    return read_statement(text).command


def test_inserts():
    assert command("insert into an.t by name select 'B' as b") == c.Insert(
        "INSERT INTO", Name(("an", "t")), query="select 'B' as b", by_name=True, alias="t"
    )
    where = command("insert into an.t replace where day = 2 and x is distinct from 3 select 1")
    assert (where.replace_where, where.query) == ("day = 2 and x is distinct from 3", "select 1")
    using = command("insert into an.t replace using (a, `b c`) table an.u")
    assert (using.replace_using, using.query) == (("a", "b c"), "table an.u")
    on = command("insert into an.t as x replace on x.a = s.a (select 1 as a from an.u) as s")
    assert (on.alias, on.replace_on, on.source) == ("x", "x.a = s.a", "s")
    assert on.query == "select * from (select 1 as a from an.u) as s"
    several = command("from an.u insert into an.t select a where b insert overwrite an.v select c")
    assert [(str(item.name), item.overwrite, item.query) for item in several.inserts] == [
        ("an.t", False, "from an.u\nselect a where b"),
        ("an.v", True, "from an.u\nselect c"),
    ]
    listed = command("insert into an.t (a, `table`) values (1, 2)")
    assert (listed.columns, listed.query) == (("a", "table"), "values (1, 2)")
    assert command("insert into an.t (table an.u)").query == "(table an.u)"


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("values (1, default), (default, 'default')", "values (1, null), (null, 'default')"),
        ("values default, 2", "values null, 2"),
        ("select default, a from an.u", "select null, a from an.u"),
        ("select default", "select null"),
        ("select t.default, f(default), default + 1", "select t.default, f(default), default + 1"),
        ("values (f(default))", "values (f(default))"),
        ("select a, default from an.u union select default, b", None),
    ],
)
def test_columns_have_no_other_default_than_null(query, read):
    read = "select a, null from an.u union select default, b" if read is None else read
    assert command(f"insert into an.t {query}").query == read


def test_tables():
    text = (
        "create table an.n (x int not null comment 'c', s struct<a: int, b: array<int>>, "
        "y int default 5, z int generated always as (x + 1), constraint k check (x > 0), "
        "primary key (x)) partitioned by (p date) tblproperties ('a' = 'b') comment 'n'"
    )
    found = command(text)
    assert [(item.name, item.type, item.nullable) for item in found.columns] == [
        ("x", "int", False),
        ("s", "struct<a: int, b: array<int>>", True),
        ("y", "int", True),
        ("z", "int", True),
        ("p", "date", True),
    ]
    assert found.constraints == (
        c.TableConstraint("check", (), "x > 0", "k"),
        c.TableConstraint("primary_key", ("x",)),
    )
    assert found.unsupported == ("y default 5", "z generated always as (x + 1)")
    assert (found.partition_by, found.properties, found.comment) == (("p",), {"a": "b"}, "n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("drop table an.t purge", "`purge` is not understood"),
        ("insert into an.t partition (p = 1", "expected `)` at the end"),
        ("insert into an.t replace when 1 select 1", "expected `on` before `when 1"),
        ("insert with schema evolution into an.t select 1", "WITH SCHEMA EVOLUTION is not"),
        ("create table an.t (a int) row format delimited as select 1", "has its columns"),
        ("create view an.v with schema evolution as select 1", "`with schema evolution` is not"),
        ("truncate table an.t partition (a = 1)", "PARTITION is not supported"),
        ("delete from an.t where", "expected an expression at the end"),
        ("delete from an.t x y where a", "`y where a` is not understood"),
        ("update an.t set a = 1 b = 2", None),
        ("merge into an.t using an.u on a = b", "expected `when` at the end"),
        ("show table extended in s like 'x' partition (a = 1)", "is not supported"),
        ("describe an.t a", "`a` is not supported"),
        ("create table an.t as insert into an.u select 1", "expected a query"),
    ],
)
def test_what_is_left_over_is_named(text, problem):
    found = command(text)
    if problem is None:  # an expression is Spark's to read
        assert found.change.clauses[0].values == {"a": "1 b = 2"}
    else:
        assert isinstance(found, c.Other) and problem in found.problem


def test_statements_are_cut_at_their_semicolons():
    text = "select ';'; /* ; */ delete from an.t -- ;\n;; ; select `;`;"
    assert split_statements(text) == ["select ';'", "/* ; */ delete from an.t -- ;", "select `;`"]
    assert [type(item.command) for item in map(read_statement, split_statements(text))] == [
        type(None),
        c.ChangeRows,
        type(None),
    ]


def test_names_are_found_in_texts_too():
    text = "execute immediate 'select * from `a n`.t, ' || \"an.u\""
    assert list(mentioned(text)) == [("a n", "t"), ("an", "u")]


@pytest.mark.parametrize(
    ("literal", "text"),
    [("'it''s'", "it's"), ("'a' 'b'", "ab"), (r"'\n\t\\\'\0'", "\n\t\\'\0"), (r"r'\n'", r"\n"),
     (r"'\u00e9\101\%\x'", "éA\\%x"), ('"a""b"', 'a"b'), (r"'\ud83d\ude00'", "\U0001f600")],
)  # fmt: skip
def test_texts(literal, text):
    assert text_of(literal, tokenize(literal)) == text


@pytest.mark.parametrize("literal", [r"'\UFFFFFFFF'", r"'\U00110000'", r"'\ud800'", "'\udfff'"])
def test_no_characters(literal):
    for sql in (f"select * from identifier({literal})", f"select 1 from t version as of {literal}"):
        with pytest.raises(QueryError, match="is not a character"):
            read_statement(sql)


@pytest.mark.parametrize(
    ("text", "simple"),
    [("(((a = 1)))", "(a = 1)"), ("((a) or (b))", "((a) or (b))"), ("f((a))", "f(a)"),
     ("x in ((1, 2))", "x in ((1, 2))"), ("x in ((select 1))", "x in ((select 1))"),
     ("(((a)) = 1 and ((b)))", "((a) = 1 and (b))"), ("a -- \\\n or b\n and c", "a and c"),
     ("/* /* */ or */ a='--'", "a='--'"), ("a/**/and b", "a and b"), ("((a", "((a")],
)  # fmt: skip
def test_what_sqlglot_gets(text, simple):
    assert simplified(text) == simple
