"""Under each setting of text, statements do what plain Spark does, or are refused by name."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from ktk_engine.errors import KtkError
from tests.spark.statements_of_store import Statements
from tests.support.random_cubes import examples
from tests.support.spark import frame_of_table

DECIDING = re.compile(
    r"spark\.sql\.(?:(?:ansi|parser|legacy)\..*|caseSensitive|storeAssignmentPolicy|timestampType)"
)
ZONE = "spark.sql.session.timeZone"
RESPECTED = (
    *(
        "spark.sql.ansi.enabled",
        "spark.sql.ansi.doubleQuotedIdentifiers",
        "spark.sql.caseSensitive",
    ),
    *("spark.sql.parser.escapedStringLiterals", ZONE),
)
ZONES = ("Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata", "+02:00")
D = Decimal


def instants(hours):
    """Hours of the first of January 2024, in UTC."""
    return pa.array([None if h is None else (1704067200 + 3600 * h) * 10**6 for h in hours]).cast(
        pa.timestamp("us", "UTC")
    )


ROWS = pa.table(
    {
        "s": ["a", "b", r"a\b", r"a\\b", "it's", 'x"y', "", "5", "A", None, "its", "${x}"],
        "n": pa.array([1, 2, 3, 4, 5, 6, None, 8, 9, 10, 11, 100], pa.int32()),
        "d": pa.array([D("1.50"), D("2.00"), None, *map(D, range(9))], pa.decimal128(10, 2)),
        "f": pa.array([0.5, 1.0, 10.0, None, *map(float, range(8))]),
        "day": pa.array([*range(19720, 19731), None], pa.date32()),
        "at": instants([*range(-5, 6), None]),
        "p": ["s", "p", "x", "s", "p", "x", "s", "p", "x", r"a\b", "01", "1"],
        "z": instants([h % 3 for h in range(12)]),
    }
)
TEXTS = ("'a'", r"'a\\b'", r"'a\b'", r"r'a\b'", "'it''s'", r"'it\'s'", '"s"', '"a"', "'A'",
         "''", r"'\101'", "'i' 't\\'s'", "'${x}'", "'5'", r"'x\"y'", '"p"', "'x'",
         "cast('a' as char(3))")  # fmt: skip
NUMBERS = ("1", "2.0", "5e0", "1.5", "'5'", "' 5 '", "'x'", "3000000000", "123456789.125", "2L",
           "-1", "0.5D", "1e1", "10BD", "cast('5' as int)", "cast(1.5 as decimal(3,1))",
           "cast('x' as int)", "null", "1.5000000000000000000000000000000001")  # fmt: skip
TIMES = ("'2024-01-01'", "timestamp '2024-01-01 03:00:00'", "date '2024-01-02'", "'2024-1-1'",
         "timestamp '2024-01-01 01:00:00+01:00'", "'2024-01-01 05:00:00'",
         "timestamp_ntz '2024-01-01 02:00:00'", "'2024-01-01T00:00:00Z'", "'garbage'",
         "timestamp '2023-12-31 18:00:00'")  # fmt: skip
OPERATORS = ("=", "<", ">=", "<>", "<=>", "!=")
KINDS = {**dict.fromkeys("sp", TEXTS), **dict.fromkeys("ndf", NUMBERS)}
KINDS |= dict.fromkeys(("day", "at", "z"), TIMES)
NAMES = {"s": ("s", "S", "`s`", "t.s"), "p": ("p", '"p"', "P"), "n": ("n", "N", '"n"')}
COLUMNS = ROWS.column_names
PATTERNS = (r"'a\\\\%'", r"'a\%'", "'a%'", "'_'", r"'%\\b'", '"a%"', r"r'a\\%'")
PARTS = ("'x'", r"'a\\b'", "01", "1", '"x"', "'01'", "null")
SHOWN_PLAIN = ", ".join(COLUMNS)
KINDS_OF_STATEMENT = ("select", "select", "view", "delete", "delete", "update", "merge", "insert",
                      "overwrite", "overwrite", "replace")  # fmt: skip
SHOWN = ", ".join(f"unix_micros({c}) as {c}" if c in ("at", "z") else c for c in COLUMNS)
STATEMENTS = 4  # of each example


def choices(spark):
    """Each setting of Spark's own registry that may decide what text means, with other values."""
    registry = getattr(spark._jvm, "org.apache.spark.sql.internal.SQLConf$").__getattr__("MODULE$")
    found = [(ZONE, zone) for zone in ZONES]
    for entry in registry.getConfigEntries().toArray():
        key, default = entry.key(), entry.defaultValueString()
        if not DECIDING.fullmatch(key) or not spark.conf.isModifiable(key):
            continue
        with pytest.raises(PySparkException) as error:
            spark.conf.set(key, "?")
        listed = re.search(r"one of '([^']*)'", str(error.value))
        values = listed[1].split(", ") if listed else ["1"]
        if "'boolean'" in str(error.value):
            values = ["true", "false"]
        found += [(key, value) for value in values if value.lower() != default.lower()]
    return sorted(found)


class Session:
    """A store and plain Spark with the same rows, under the same settings."""

    def __init__(self, spark, root, settings):
        self.own = Statements(spark, root, settings)
        self.plain = self.own.spark
        self.own.fill("t", ROWS, ("p", "z"))
        frame_of_table(self.plain, ROWS).createOrReplaceTempView("plain")

    def answer(self, statement):
        """The rows of a query, or those after a change; or why it is refused."""
        before = self.rows()
        try:
            found = self.own.run(statement.ours)
        except (KtkError, PySparkException) as error:
            assert self.rows() == before, statement
            return error
        return shown(found) if statement.is_query else self.rows()

    def wanted(self, statement):
        """What plain Spark says."""
        try:
            if statement.filled:
                return self.inserted(statement)
            return shown(self.plain.sql(f"select {SHOWN} from ({statement.plain})").collect())
        except (PySparkException, Py4JJavaError) as error:
            return error

    def inserted(self, statement):
        plain = self.own.default  # what the table holds does not depend on settings
        plain.sql("drop table if exists plain_t")
        filled = self.plain.sql(statement.filled)
        filled.write.partitionBy("p", "z").saveAsTable("plain_t")
        try:
            self.plain.sql(statement.plain)
            return shown(self.plain.sql(f"select {SHOWN} from plain_t").collect())
        finally:
            plain.sql("drop table plain_t")

    def rows(self):
        """The stored rows, by a reader without settings."""
        table = self.own.stored("t").select(COLUMNS)
        for name in ("at", "z"):
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table[name].cast(pa.int64()))
        return shown(map(dict.values, table.to_pylist()))


def shown(rows):
    return sorted(repr(tuple(row)) for row in rows)


class Text(NamedTuple):
    """A statement on `an.t`, and what plain Spark is asked about it."""

    ours: str
    plain: str
    is_query: bool = False
    filled: str = ""  # the rows of a table of Spark, for an insert


@st.composite
def conditions(draw, depth=1):
    kind = draw(st.integers(0, 9))
    if kind < 2 and depth:
        word = draw(st.sampled_from(("and", "or")))
        return f"({draw(conditions(0))}) {word} ({draw(conditions(0))})"
    if kind == 2 and depth:
        return f"{draw(st.sampled_from(('not', '!')))} ({draw(conditions(0))})"
    column = draw(st.sampled_from(COLUMNS))
    name, values = (
        draw(st.sampled_from(NAMES.get(column, (column,)))),
        st.sampled_from(KINDS[column]),
    )
    if kind == 3:
        return f"{name} in ({draw(values)}, {draw(values)})"
    if kind == 4:
        return f"{name} is {draw(st.sampled_from(('', 'not ')))}null"
    if kind == 5:
        return f"{name} between {draw(values)} and {draw(values)}"
    if kind == 6 and column in ("s", "p"):
        return f"{name} like {draw(st.sampled_from(PATTERNS))}"
    return f"{name} {draw(st.sampled_from(OPERATORS))} {draw(values)}"


@st.composite
def statements(draw):
    where, kind = draw(conditions()), draw(st.sampled_from(KINDS_OF_STATEMENT))
    kept = f"select * from plain as t where not coalesce({where}, false)"
    if kind == "select":
        query = f"select {SHOWN} from (select * from an.t as t where {where})"
        return Text(query, f"select * from plain as t where {where}", True)
    if kind == "view":
        query = f"create or replace view an.v as select * from an.t as t where {where}"
        plain = f"select * from plain as t where {where}"
        return Text(f"{query}; select {SHOWN} from an.v", plain, True)
    if kind == "delete":
        return Text(f"delete from an.t as t where {where}", kept)
    if kind == "update":
        new = SHOWN_PLAIN.replace("n,", f"case when {where} then n + 1 else n end as n,", 1)
        return Text(
            f"update an.t as t set n = n + 1 where {where}", f"select {new} from plain as t"
        )
    if kind == "merge":
        head = f"merge into an.t as t using (select 1 as k) as q on {where}"
        return Text(f"{head} when matched then delete", kept)
    new = ", ".join(draw(st.sampled_from(KINDS[c])) for c in COLUMNS[:6])
    part, at = draw(st.sampled_from(PARTS)), draw(st.sampled_from(TIMES))
    filled = "select * from plain"
    values = f"insert into {{}} values ({new}, {part}, {at})"
    if kind == "overwrite":
        lenient = draw(st.sampled_from(("", " if not exists")))
        ours = plain = (
            f"insert overwrite {{}} partition (p = {part}, z = {at}){lenient} select {new}"
        )
    elif kind == "replace":
        ours = f"insert into {{}} replace where p = {part} select {new}, {part}, {at}"
        plain, filled = values, f"{filled} as t where not coalesce(p = {part}, false)"
    else:
        ours = plain = values
    return Text(ours.replace("{}", "an.t"), plain.replace("{}", "plain_t"), filled=filled)


@pytest.fixture(scope="module")
def all_choices(spark):
    return choices(spark)


@examples(12)
@given(data=st.data())
def test_random_statements_under_each_setting(spark, tmp_path_factory, all_choices, data):
    key, value = data.draw(st.sampled_from(all_choices))
    check(
        spark, tmp_path_factory, {key: value}, [data.draw(statements()) for _ in range(STATEMENTS)]
    )


@examples(6)
@given(data=st.data())
def test_random_statements_under_settings_that_are_respected(spark, tmp_path_factory, data):
    chosen = data.draw(st.sets(st.sampled_from(RESPECTED), min_size=1, max_size=3))
    settings = {key: "true" for key in chosen if key != ZONE}
    if "spark.sql.ansi.enabled" in chosen:
        settings["spark.sql.ansi.enabled"] = "false"
    if ZONE in chosen:
        settings[ZONE] = data.draw(st.sampled_from(ZONES))
    check(spark, tmp_path_factory, settings, [data.draw(statements()) for _ in range(STATEMENTS)])


def check(spark, folders, settings, texts):
    for text in texts:
        session = Session(spark, folders.mktemp("settings"), settings)
        try:
            wanted, found = session.wanted(text), session.answer(text)
            problem = difference(wanted, found, settings)
            if problem and not is_so_by_default(spark, folders, text, wanted, found):
                raise AssertionError(f"{settings}\n{text.ours}\n{text.plain}\n{problem}")
        finally:
            session.own.close()


def difference(wanted, found, settings):
    """What is wrong, if anything is."""
    if isinstance(found, Exception):
        named = any(f"`{key}`" in str(found) for key in settings if key not in RESPECTED)
        return "" if named or isinstance(wanted, Exception) else f"refused: {found}"
    if "CANNOT_SAFELY_CAST" in str(wanted) or not isinstance(wanted, PySparkException | list):
        return ""  # our `insert` casts more, under all settings; or Spark fails by a defect
    if isinstance(wanted, Exception):
        return f"Spark refuses: {str(wanted)[:300]}; here {found}"
    return (
        ""
        if wanted == found
        else f"{sorted(set(wanted) - set(found))}\n{sorted(set(found) - set(wanted))}"
    )


def is_so_by_default(spark, folders, text, wanted, found):
    """Whether a refusal, or what only Spark refuses, has nothing to do with settings."""
    session = Session(spark, folders.mktemp("default"), {})
    try:
        usual = session.answer(text)
        if isinstance(found, Exception):
            return isinstance(usual, Exception)
        return not isinstance(usual, Exception) and isinstance(session.wanted(text), Exception)
    finally:
        session.own.close()
