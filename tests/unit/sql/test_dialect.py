"""What settings make of SQL text: every reader sees the same."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine.conditions.render import to_sql  # deep: what is read back
from ktk_engine.errors import ConditionError, ConfigurationError
from ktk_engine.sql.dialect import DEFAULT, Dialect
from ktk_engine.sql.token import simplified, text_of, tokenize
from ktk_engine.types.quote import quote_text  # deep: what is read back
from tests.support.queries import comparison, parse_condition

QUOTES = Dialect(quotes_names=True)
ESCAPES = Dialect(keeps_backslashes=True)
SCHEMA = pa.schema({"s": pa.string(), "a b": pa.int64(), "N": pa.int64()})


BOTH = Dialect(quotes_names=True, keeps_backslashes=True)


@pytest.mark.parametrize(
    ("dialect", "text", "default"),
    [
        (QUOTES, 'a = "x"', "a = `x`"),
        (QUOTES, '"a""`b" = 1', '`a"``b` = 1'),
        (QUOTES, r"a = 'x\\y'", r"a = 'x\\y'"),
        (ESCAPES, 'a = "x"', "a = 'x'"),
        (ESCAPES, r"a = 'x\\y'", r"a = 'x\\\\y'"),
        (ESCAPES, r"a = 'x\'y'", r"a = 'x\\\'y'"),
        (ESCAPES, "like'it''s'", r"like 'it\'\'s'"),
        (ESCAPES, r"s = '${x}\n'", r"s = '${x}\n'"),
        (BOTH, r"""a = 'x' -- 'x\y' "z" """, r"""a = 'x' -- 'x\y' "z" """),
    ],
)
def test_a_text_is_read_in_the_default_dialect_and_spark_gets_it_back(dialect, text, default):
    found = dialect.in_default(text)
    assert found.split() == default.split()
    back = dialect.for_spark(found)
    assert dialect.in_default(back).split() == default.split()
    assert DEFAULT.in_default(text) == DEFAULT.for_spark(text) == text


@pytest.mark.parametrize(
    ("dialect", "text", "sparks"),
    [
        (QUOTES, 's = "x"', "s = 'x'"),
        (QUOTES, r"s = 'it\'s'", r"s = 'it\'s'"),
        (ESCAPES, r"s = 'a\\b'", r"s = 'a\b'"),
        (ESCAPES, r"s = r'a\b'", r"s = 'a\b'"),
        (ESCAPES, r"s = 'it\'s'", """s = "it's" """),
        (BOTH, r"s = 'it\'s'", "s = cast(X'69742773' as string)"),
        (ESCAPES, r"s = 'a\\'", "s = cast(X'615c' as string)"),
        (ESCAPES, r"s = 'a\\' 'b'", r"s = 'a\b'"),
        (ESCAPES, r"s = 'a' /* */ 'b\\' -- c", "s = cast(X'61625c' as string) -- c"),
        (ESCAPES, r"s = 'it' '\'s \"'", "s = cast(X'697427732022' as string)"),
        (ESCAPES, r"options (k 'a\\b', 'c' 'd\\e')", r"options (k 'a\b', 'c' 'd\e')"),
        (ESCAPES, r"s like '\\%' escape '\\' and t", r"s like '\%' and t"),
        (ESCAPES, r"s like 'x' escape '\''", """s like 'x' escape "'" """),
        (ESCAPES, r"s = '\u0024{env:HOME}'", "s = cast(X'247b656e763a484f4d457d' as string)"),
        (QUOTES, r"s like 'x' escape '\\'", r"s like 'x' escape '\\'"),
    ],
)
def test_spark_gets_a_stored_text_in_its_dialect(dialect, text, sparks):
    assert dialect.for_spark(text).split() == sparks.split()


@pytest.mark.parametrize(
    ("dialect", "text", "word"),
    [
        (BOTH, r"s like 'x' escape '\''", "ESCAPE"),
        (ESCAPES, r"create temporary view v comment 'a\\' as select 1", "COMMENT"),
        (ESCAPES, r"s = date '2024\\'", "DATE"),
        (ESCAPES, r"with (escape '\\')", "ESCAPE"),
        (ESCAPES, r"s = 'a\\' '${x}'", "="),
    ],
)
def test_a_text_without_a_literal_where_only_a_literal_may_be_is_refused(dialect, text, word):
    with pytest.raises(ConfigurationError, match=rf"escapedStringLiterals.*{word} needs a literal"):
        dialect.for_spark(text)


@pytest.mark.parametrize(
    "text", ["", "it's", "\\", "a\\'b", "'", '"', "'\"'", "${env:HOME}", "$${x}$", "\n\0'", "%\\%"]
)
def test_a_quoted_text_is_read_back(text):
    written = quote_text(text)
    assert text_of(written, tokenize(written)) == text
    assert "${" not in written  # Spark would replace it
    found = parse_condition(f"s = {written}", SCHEMA)
    assert found == comparison("s", pa.string(), "=", text)
    assert parse_condition(to_sql(found), SCHEMA) == found


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        (r"s = '\101'", "s = 'A'"),
        (r"s = r'\101'", r"s = '\\101'"),
        ("s = 'a' /* */ 'b'", "s = 'ab'"),
        ("s = 'a''b' and s = 'x'", "s = 'a''b' and s = 'x'"),
        ('s = "a"', "s = 'a'"),
        (r"s like '\%a'", r"s like '\\%a'"),
        ("b = x'0A' or s = ''", "b = x'0A' or s = ''"),
    ],
)
def test_literals_reach_sqlglot_in_one_spelling(sql, wanted):
    assert simplified(sql) == wanted


@pytest.mark.parametrize(
    ("dialect", "sql", "same"),
    [
        (QUOTES, '"a b" = 1', "`a b` = 1"),
        (QUOTES, "s = 'x'", "s = 'x'"),
        (ESCAPES, r"s = 'a\\b'", r"s = 'a\\\\b'"),
        (ESCAPES, r"s like 'a\%b'", r"s like 'a\%b'"),
        (ESCAPES, "s in ('a\\n', 'it''s')", r"s in ('a\\n', 'it\'\'s')"),
        (Dialect(is_case_sensitive=True), "`N` = 1", "N = 1"),
    ],
)
def test_a_condition_is_read_in_its_dialect(dialect, sql, same):
    found = parse_condition(dialect.in_default(sql), SCHEMA, dialect=dialect)
    assert found == parse_condition(same, SCHEMA)


@pytest.mark.parametrize(
    ("dialect", "sql", "problem"),
    [
        (QUOTES, 's = "x"', "x"),
        (Dialect(is_case_sensitive=True), "n = 1", "Unknown column `n`"),
        (Dialect(is_ansi=False), "`a b` in ('1', '2')", "outside of ANSI mode"),
        (Dialect(is_sparks=True), "s = '${x}'", "Only Spark knows"),
        (Dialect(is_sparks=True), "N < " + "9" * 39, "Only Spark knows"),
        (Dialect(others=("spark.sql.legacy.x",)), "s = 'x'", "spark.sql.legacy.x decides"),
    ],
)
def test_what_only_spark_knows_is_left_to_it(dialect, sql, problem):
    with pytest.raises(ConditionError, match=problem):
        parse_condition(dialect.in_default(sql), SCHEMA, dialect=dialect)


def test_settings_become_a_dialect():
    settings = {
        "spark.sql.session.timeZone": "Europe/Berlin",
        "spark.sql.caseSensitive": "TRUE",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.storeAssignmentPolicy": "ansi",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.shuffle.partitions": "2",
    }
    assert Dialect.of(settings) == Dialect("Europe/Berlin", True, True, True, True, True)
    without_ansi = Dialect.of({**settings, "spark.sql.ansi.enabled": "false"})
    assert not without_ansi.quotes_names
    unknown = Dialect.of({"spark.sql.legacy.new": "1", "spark.sql.storeAssignmentPolicy": "LEGACY"})
    assert unknown.others == ("spark.sql.legacy.new", "spark.sql.storeAssignmentPolicy")
    with pytest.raises(ConfigurationError, match=r"DELETE FROM.*`spark\.sql\.legacy\.new`.*reset"):
        unknown.check_known("DELETE FROM")


def test_a_refusal_repeats_the_beginning_of_a_long_text():
    with pytest.raises(ConditionError) as error:
        parse_condition("not " * 1000 + "true", SCHEMA)
    assert len(str(error.value)) < 800


@pytest.mark.parametrize("sql", ["N = cast('5\u3000' as int)", "N = cast('5\x7f' as int)"])
def test_what_spark_refuses_or_reads_otherwise_is_refused(sql):
    with pytest.raises(ConditionError):
        parse_condition(sql, SCHEMA)
