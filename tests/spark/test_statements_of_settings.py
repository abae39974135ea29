"""Settings and clauses that were dropped in silence: zones, lengths, ANSI mode, variables."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from ktk_engine.errors import KtkError
from tests.spark.statements_of_store import Statements

BERLIN = {"spark.sql.session.timeZone": "Europe/Berlin"}
NAMES = {"spark.sql.ansi.doubleQuotedIdentifiers": "true"}
ESCAPES = {"spark.sql.parser.escapedStringLiterals": "true"}


@pytest.fixture
def start(spark, tmp_path):
    started = []

    def begin(settings=(), root="first"):
        started.append(Statements(spark, tmp_path / root, settings))
        return started[-1]

    yield begin
    for each in started:
        each.close()


@pytest.mark.parametrize(
    "text",
    ["insert overwrite an.zp partition (z = timestamp '2025-01-01 01:00:00') if not exists"
     " select 9",
     "insert overwrite an.zp partition (z = '2025-01-01 01:00:00') if not exists select 9",
     "delete from an.zp where z = timestamp '2025-01-01 00:00:00'",
     "delete from an.zp where z in ('2025-01-01', '2025-01-02')",
     "update an.zp set x = 7 where z < '2025-01-01 01:00:00'",
     "insert into an.zp replace where z = '2025-01-01' select 1, timestamp '2025-01-01 00:00:00'"
     " where false",
     "merge into an.zp using (select 1 as k) on z = date '2025-01-01' when matched then delete"],
)  # fmt: skip
@pytest.mark.parametrize("by_statement", [False, True])
def test_a_time_without_a_zone_is_of_the_session(start, text, by_statement):
    session = start() if by_statement else start(BERLIN)
    session.run("set time zone 'Europe/Berlin'" if by_statement else "select 1")
    session.run("create table an.zp (x int, z timestamp) partitioned by (z)")
    session.run("insert into an.zp values (1, timestamp '2025-01-01 01:00:00')")
    session.run(text)
    assert session.rows("select x, unix_seconds(z) from an.zp") == [(1, 1735689600)]


def test_names_in_double_quotes(start):
    session = start(NAMES)
    session.run("create table an.w (p string, q string) partitioned by (p)")
    session.run("insert into an.w values ('a', 'x'), ('p', 'x'), ('b', 'y')")
    assert session.rows('select count(*) from "an"."w" where p = "p"') == [(3,)]
    session.run('create view an.v as select "p" as "a b" from an.w where q = \'y\'')
    session.run("""delete from "an".w where p = "p" and "q" = 'x'""")
    assert session.rows("select q, p from an.w") == [("y", "b")]
    session.run("reset spark.sql.ansi.doubleQuotedIdentifiers")
    assert session.rows("select `a b` from an.v") == [("b",)]
    assert session.rows('select "p"') == [("p",)]


def test_what_is_stored_means_the_same_under_all_settings(start):
    session = start(ESCAPES)
    session.run(
        r"create table an.t (s string check (s <> 'a\b')); insert into an.t values ('a\\b')"
    )
    session.run(r"create view an.v as select s from an.t where s = 'a\\b'")
    assert session.rows("select * from an.v") == [(r"a\\b",)]
    with pytest.raises(KtkError):
        session.run(r"insert into an.t values ('a\b')")
    session.run("set spark.sql.parser.escapedStringLiterals = false")
    assert session.rows("select * from an.v") == [(r"a\\b",)]
    with pytest.raises(KtkError):
        session.run(r"insert into an.t values ('a\\b')")


VIEWS = {
    r"select s from an.t where s like '100\\%' escape '\\'": ["100%"],
    r"select s from an.t where s not ilike '%\\%' escape '\\'": ["a\\"],
    r"select 'a' 'b\\' x": ["ab\\"],
    r"select 'it' '\'s \"' x": ["it's \""],
    r"select '\u0024{env:HOME}' x": ["${env:HOME}"],
    r"select s from an.t where s in ('a\\', '\'\"')": ["a\\"],
}


@pytest.mark.parametrize("settings", [ESCAPES, {**ESCAPES, **NAMES}], ids=["one", "both"])
def test_a_stored_view_reads_the_same_where_texts_are_written_otherwise(start, settings):
    first = start()
    first.run(r"create table an.t (s string); insert into an.t values ('100%'), ('a\\')")
    for number, query in enumerate(VIEWS):
        first.run(f"create view an.v{number} as {query}")
    first.run(r"create view an.v as select s from an.t where s like 'a' escape '\''")
    for key, value in settings.items():
        first.run(f"set {key} = {value}")
    for number, rows in enumerate(VIEWS.values()):
        assert first.rows(f"select * from an.v{number}") == [(row,) for row in rows]
    if settings == ESCAPES:
        assert first.rows("select * from an.v") == []
        return
    with pytest.raises(KtkError, match="ESCAPE needs a literal"):
        first.run("select * from an.v")


def test_letter_case(start):
    session = start({"spark.sql.caseSensitive": "true"})
    session.run("create table an.t (a int, b int); insert into an.t (b, a) values (1, 2)")
    for text in ("delete from an.t where A = 2", "update an.t set A = 1", "select A from an.t",
                 "insert into an.t (A, b) values (1, 2)",
                 "delete from an.t where T.a = 2"):  # fmt: skip
        with pytest.raises((KtkError, PySparkException)):
            session.run(text)
    session.run("update an.t set a = 3 where b = 1")
    assert session.rows("select a, b from an.t") == [(3, 1)]


def test_a_value_that_does_not_fit_is_an_error_outside_of_ansi_mode(start):
    session = start({"spark.sql.ansi.enabled": "false"})
    session.run("create table an.t (n tinyint, d date); insert into an.t values (1, '2024-01-01')")
    merge = "merge into an.t using (select 1 as k) on n = k when matched then update set"
    for text in ("insert into an.t (n) values ('y')", "insert into an.t (d) values ('x')",
                 "update an.t set n = 'y'", "update an.t set d = 'x'",
                 f"{merge} n = 'y'"):  # fmt: skip
        with pytest.raises((KtkError, PySparkException)):
            session.run(text)
    assert session.rows("select n from an.t where cast('x' as int) is null") == [(1,)]


@pytest.mark.parametrize(
    "setting",
    ["spark.sql.legacy.notKnownYet", "spark.sql.storeAssignmentPolicy", "spark.sql.timestampType",
     "spark.sql.parser.quotedRegexColumnNames"],
)  # fmt: skip
def test_settings_that_are_not_known_refuse_writes_by_name(start, setting):
    session = start()
    session.run("create table an.t (a int); insert into an.t values (1)")
    value = {"storeAssignmentPolicy": "LEGACY", "timestampType": "TIMESTAMP_NTZ"}
    session.run(f"set {setting} = {value.get(setting.rsplit('.', 1)[-1], 'true')}")
    for text in ("delete from an.t", "update an.t set a = 2",
                 "insert into an.t values (2)",
                 "merge into an.t using an.t as s on false when not matched then"
                 " insert *"):  # fmt: skip
        with pytest.raises(KtkError, match=setting):
            session.run(text)
    assert session.rows("select a from an.t") == [(1,)]
    session.run(f"reset {setting}; delete from an.t")
    assert session.rows("select a from an.t") == []


def test_variables_are_sparks(start):
    session = start()
    session.run("create table an.t (a string); insert into an.t values ('x'), ('$')")
    session.run("set my.value = x; delete from an.t where a = '${my.value}'")
    assert session.rows("select a from an.t") == [("$",)]


def test_the_length_of_a_text(start):
    session = start()
    session.run(
        "create table an.c (x varchar(3), y string); insert into an.c values ('abc', 'long')"
    )
    with pytest.raises(KtkError, match=r"varchar\(3\)"):
        session.run("insert into an.c values ('abcdef', 'y')")
    for text in ("create table an.d (x char(5))", "create table an.d (x struct<a: varchar(3)>)",
                 "alter table an.c add columns (z varchar(2))",
                 "alter table an.c alter column y type varchar(2)"):  # fmt: skip
        with pytest.raises(KtkError, match="string"):
            session.run(text)
    assert session.rows("select x, y from an.c") == [("abc", "long")]


@pytest.mark.parametrize(
    ("type_", "why"),
    [
        ("char(3)", r"fills a char\(3\) with blanks"),
        ("Character ( 3 )", r"fills a Character \( 3 \) with blanks"),
        ("CHARACTER VARYING(3)", r"has no CHARACTER VARYING\(3\)"),
    ],
)
def test_a_length_that_spark_fills_or_lacks_is_refused_with_advice(start, type_, why):
    session = start()
    with pytest.raises(KtkError, match=rf"{why}.* Write varchar\(3\) or string\."):
        session.run(f"create table an.t (x {type_})")
    assert session.names() == []
