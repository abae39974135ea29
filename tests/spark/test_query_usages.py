"""What a text says that it reads, beside what Spark's plan says, and beside the rows themselves.

Over Spark Connect only the text is there. It may find less than Spark's plan does: more columns,
and weaker conditions. It never finds a condition that a row fails which the answer needs.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from random import Random
from typing import TypeVar

import pyarrow as pa
import pytest
import sqlglot
from pyspark.errors import PySparkException
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ktk_engine.conditions.evaluate import evaluate  # deep: of single conditions
from ktk_engine.conditions.render import to_sql  # deep: of single conditions
from ktk_engine.plan.statement.query_text import QueryText  # deep: what is compared
from ktk_engine.plan.statement.usage import Usage, read_usage  # deep: what is compared
from ktk_engine.spark.client.client import client_of, is_connect
from ktk_engine.spark.sql.marked_frame import marked_frame
from ktk_engine.spark.sql.sql_session import columns_of
from ktk_engine.sql.dialect import DEFAULT
from ktk_engine.sql.rename import rename
from ktk_engine.sql.token import split_statements
from tests.spark.random_queries import COLUMNS, Queries
from tests.spark.statement_sources import of_dbt, of_kinds, of_others, of_tests, of_tpcds
from tests.support.changes import read_statement
from tests.support.random_cubes import TIMES
from tests.support.spark import frame_of_table, make_scratch_folder

pytestmark = pytest.mark.usefixtures("few_rows")

ROWS = 300  # on which conditions are compared
T = TypeVar("T")
# How the names of columns begin in relations of TPC-DS.
_PREFIXES = """call_center cc, catalog_page cp, catalog_returns cr, catalog_sales cs, customer c,
customer_address ca, customer_demographics cd, date_dim d, household_demographics hd,
income_band ib, inventory inv, item i, promotion p, reason r, ship_mode sm, store s,
store_returns sr, store_sales ss, time_dim t, warehouse w, web_page wp, web_returns wr,
web_sales ws, web_site web"""
_TPCDS = dict(pair.split() for pair in _PREFIXES.split(","))
_OF_TEXTS = (exp.Like, exp.Upper, exp.Lower, exp.Substring, exp.Concat, exp.Trim)
_NUMBER, _TEXT = re.compile(r"\b\d{1,9}\b"), re.compile(r"'([^'\\]*)'")
_DOUBLE = re.compile(r"\b\d+[eE]\d")
_ESCAPE = re.compile(r"[\\!^#]")  # characters before a sign of LIKE
_DATE = re.compile(r"\b[12]\d{3}-[01]\d-[0-3]\d\b")


@pytest.fixture
def compared(spark):
    if is_connect(spark):
        pytest.skip("only a session of this process shows plans")
    return Compared(spark)


class Compared:
    """Compares text and plan of queries whose relations have the columns that they name.

    Attributes:
        understood: how many queries the text was understood of.
        unlike: queries for whose conditions only rows can tell.
    """

    def __init__(self, spark) -> None:
        self.spark = spark
        self.scratch = make_scratch_folder()
        self.understood = 0
        self.refused = 0
        self.unlike: list[str] = []

    def sources(self, sources: Iterable[str], least: int) -> None:
        """Compare what is a query of all texts."""
        texts = dict.fromkeys(text for source in sources for text in split_statements(source))
        for text in sample(list(texts)):
            self.text(text)
        assert self.understood >= len(sample(range(least))), (self.understood, self.refused)
        assert self.unlike == []

    def text(self, text: str) -> None:
        statement = read_statement(text)
        # A text's 1e2 prunes integers, which a plan casts to double and says nothing of. Half of a
        # surrogate pair cannot be sent to Spark.
        unlike = _DOUBLE.search(text) or text != text.encode(errors="replace").decode()
        if not statement.query or not statement.references or unlike:
            return
        query = read_statement(statement.query)
        names = {reference: f"__m{n}" for n, reference in enumerate(query.references)}
        bound = rename(query.sql, names)
        columns = named(bound)
        guesses = ({}, dict.fromkeys(columns, pa.int64()), dict.fromkeys(columns, pa.string()))
        for guess in guesses:
            typed = {**columns, **guess}
            markers = {
                names[item]: pa.schema(list(of_relation(item.parts[-1].lower(), typed).items()))
                for item in query.references
            }
            if self.bound(bound, markers):
                return

    def bound(self, text: str, markers: Mapping[str, pa.Schema]) -> bool:
        """Compare; whether Spark takes the query."""
        for marker, schema in markers.items():
            frame = marked_frame(self.spark, self.scratch, schema, marker)
            frame.createOrReplaceTempView(marker)
        try:
            plan, zone = client_of(self.spark).optimized_plan(self.spark.sql(text))
        except PySparkException:
            return False
        usages = QueryText(partial(columns_of, self.spark)).usages(text, markers, DEFAULT)
        self.refused += not usages
        self.understood += bool(usages)
        for marker, usage in usages.items():
            theirs = read_usage(plan, zone, marker, markers[marker])
            if theirs is None:
                continue
            assert theirs.columns <= usage.columns, (text, marker)
            rows = many_rows(markers[marker], text)
            if not implies(theirs, usage, rows) and not self.answers_alike(
                text, marker, rows, usage
            ):
                self.unlike.append(f"{text}\n{marker}: {to_sql(usage.condition)}")
        return True

    def answers_alike(self, text: str, marker: str, rows: pa.Table, usage: Usage) -> bool:
        """Whether Spark's answer needs no row that the text leaves out, as the plan says less."""
        answers = []
        for given in (rows, rows.filter(evaluate(usage.condition, rows))):
            frame_of_table(self.spark, given).createOrReplaceTempView(marker)
            answers.append(sorted(map(repr, self.spark.sql(text).collect())))
        return answers[0] == answers[1] != []


def sample(texts: Sequence[T]) -> Sequence[T]:
    """An eighth of them, unless there is time for more."""
    return texts if TIMES > 1 else texts[1::8]


def named(text: str) -> dict[str, pa.DataType]:
    """The columns that a query names, in lower case, and what they seem to be."""
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError:
        return {"a": pa.int64()}
    found = {"a": pa.int64()}
    for join in tree.find_all(exp.Join):
        found |= {item.name.lower(): pa.int64() for item in join.args.get("using") or ()}
    for column in tree.find_all(exp.Column):
        name, beside = column.name.lower(), list(column.parent.iter_expressions())
        if not name.startswith("__m"):
            found.setdefault(name, pa.int64())
            if isinstance(column.parent, _OF_TEXTS) or any(item.is_string for item in beside):
                found[name] = pa.string()
            elif any(item.find(exp.Cast) for item in beside) and name.endswith("date"):
                found[name] = pa.date32()
    return found


def of_relation(name: str, columns: Mapping[str, pa.DataType]) -> Mapping[str, pa.DataType]:
    """The columns of a relation; those that are none of TPC-DS have all."""
    if name not in _TPCDS:
        return columns
    own = {item: kind for item, kind in columns.items() if item.startswith(f"{_TPCDS[name]}_")}
    return own or {f"{_TPCDS[name]}_": pa.int64()}


def many_rows(schema: pa.Schema, text: str) -> pa.Table:
    """Rows of values that a text names, or that are close to them."""
    chance = Random(text)
    numbers = {int(found) + n for found in _NUMBER.findall(text) for n in (-1, 0, 1)}
    texts = {*_TEXT.findall(text), *_TEXT.findall(_ESCAPE.sub("", text))}
    values = {
        pa.int64(): [None, 0, *sorted(numbers)],
        pa.string(): [None, "", *sorted({*texts, *map(str, numbers)})],
        pa.date32(): [None, *(date.fromisoformat(item) for item in _DATE.findall(text))],
    }
    return pa.table(
        {f.name: pa.array(chance.choices(values[f.type], k=ROWS), f.type) for f in schema}
    )


def implies(theirs: Usage, usage: Usage, rows: pa.Table) -> bool:
    """Whether every row that the plan needs fulfils the text's condition."""
    needed = rows.filter(evaluate(theirs.condition, rows))
    return all(evaluate(usage.condition, needed).to_pylist())


def test_statements_of_the_tests(compared):
    compared.sources(itertools.chain(of_kinds(), of_tests()), 500)


def test_statements_of_dbts_suites(compared):
    compared.sources(of_dbt(), 24)


@pytest.mark.skipif(TIMES == 1, reason="they are long: make test-random")
def test_queries_of_tpcds(compared):
    compared.sources(of_tpcds(), 10)


@pytest.mark.skipif("KTK_SQL" not in os.environ, reason="KTK_SQL names no folder with SQL files")
def test_statements_of_others(compared):
    compared.sources(of_others(), 0)


class Restricted:
    """Asks queries of relations that lack what the text says that they do not need."""

    def __init__(self, spark) -> None:
        chance = Random(0)
        self.spark = spark
        self.schema = pa.schema([(n, pa.string() if n == "s" else pa.int64()) for n in COLUMNS])
        values = {"s": [None, "k1", "k2", "K1", "z"]}
        for name, rows in (("t", 25), ("u", 12)):
            columns = {
                field.name: chance.choices(values.get(field.name, [None, 0, 1, 2, 3]), k=rows)
                for field in self.schema
            }
            frame_of_table(spark, pa.table(columns, self.schema)).createOrReplaceTempView(name)

    def rows(self, text: str) -> list[str]:
        return sorted(map(repr, self.spark.sql(text).collect()))

    def check(self, text: str) -> bool:
        """Compare a query's rows; whether it was understood."""
        places = {
            reference: f"__m{n}" for n, reference in enumerate(read_statement(text).references)
        }
        bound = rename(text, places)
        markers = dict.fromkeys(places.values(), self.schema)
        usages = QueryText(partial(columns_of, self.spark)).usages(bound, markers, DEFAULT)
        if not usages:
            return False
        for reference, name in places.items():
            usage = usages[name]
            items = [
                item if item in usage.columns else f"cast(null as {kind}) as {item}"
                for item, kind in zip(COLUMNS, ("bigint",) * 3 + ("string",), strict=True)
            ]
            self.spark.sql(
                f"create or replace temp view {name} as select {', '.join(items)} "
                f"from {reference.parts[-1]} where {to_sql(usage.condition)}"
            )
        assert self.rows(bound) == self.rows(text), (text, usages)
        return True


@pytest.fixture
def restricted(spark):
    return Restricted(spark)


def test_random_queries_need_no_more_than_their_texts_say(restricted):
    count = 8 * TIMES
    seeds = range(count) if TIMES == 1 else range(1000, 1000 + count)
    understood = sum(restricted.check(Queries(Random(seed)).query()) for seed in seeds)
    assert understood > count / 2
