from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktk_engine.conditions.condition import (
    And,
    Comparison,
    Condition,
    IsNull,
    Like,
    Not,
    Or,
    StartsWith,
    TrueCondition,
)
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.conditions.literal import comparison
from ktk_engine.conditions.parse import parse_condition
from ktk_engine.conditions.render import to_sql
from ktk_engine.errors import ConditionError
from ktk_engine.sql.dialect import Dialect  # deep: the zone
from tests.support.queries import quote_identifier, quote_literal
from tests.unit.types.naive import OPERATIONS
from tests.unit.types.strategies import CONDITIONS, ROW_SCHEMA, TABLES

SCHEMA = pa.schema(
    [
        ("i", pa.int32()), ("u", pa.uint16()), ("f", pa.float32()), ("s", pa.large_string()),
        ("b", pa.bool_()), ("x", pa.binary()), ("d", pa.date32()), ("t", pa.timestamp("us")),
        ("z", pa.timestamp("us", "Europe/Berlin")), ("m", pa.decimal128(10, 2)),
        ("o", pa.time64("us")), ("l", pa.list_(pa.int8())), ("n", pa.null()),
        ("a b", pa.string()), ("month", pa.int8()), ("tick`", pa.int8()),
    ]
)  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("i = 5", "`i` = 5L"),
        ("5 < i", "`i` > 5L"),
        ("i <> -(-3)", "`i` != 3L"),
        ("i > 1.5", "`i` > 1L"),
        ("i in (1, 2.5, 3)", "`i` in (1L, 3L)"),
        ("i not in (1)", "`i` not in (1L)"),
        ("i between 1 and 5", "`i` >= 1L and `i` <= 5L"),
        ("i = cast('7' as bigint)", "`i` = 7L"),
        ("u = 3", "`u` = cast('3' as decimal(20,0))"),
        ("f > 30", "`f` > 30.0D"),
        ("f = 0.1", "`f` = 0.1D"),
        ("f > -1e23 and i < 1e3", "`f` > -1E23D and `i` < 1000L"),
        ("f < cast('Infinity' as double)", "`f` < cast('Infinity' as double)"),
        ("s like 'abc%'", "`s` like 'abc%'"),
        ("s not like '%x'", "`s` not like '%x'"),
        (r"s = 'it\'s'", r"`s` = 'it\'s'"),
        ("b and not b", "`b` = true and not (`b` = true)"),
        ("b is not true", "not (`b` <=> true)"),
        ("x = X'0aFF'", "`x` = X'0AFF'"),
        ("d >= '2013-01-01'", "`d` >= date '2013-01-01'"),
        ("d = date '2013-01-01'", "`d` = date '2013-01-01'"),
        ("t > '2013-01-01'", "`t` > timestamp_ntz '2013-01-01 00:00:00.000000'"),
        (
            "t = timestamp '2013-01-01 10:00:00.5'",
            "`t` = timestamp_ntz '2013-01-01 10:00:00.500000'",
        ),
        (
            "z = '2013-01-01 00:00:00 Europe/Berlin'",
            "`z` = timestamp '2012-12-31 23:00:00.000000+00:00'",
        ),
        ("z = '2013-01-01 00:00:00'", "`z` = timestamp '2013-01-01 00:00:00.000000+00:00'"),
        ("m = 1.5", "`m` = cast('1.50' as decimal(38,2))"),
        ("o > '12:00'", "`o` > time '12:00:00.000000'"),
        ("l is not null", "`l` is not null"),
        ("`a b` = 'q'", "`a b` = 'q'"),
        ("`tick``` = 1", "`tick``` = 1L"),
        ("I = 5 and MONTH = 1", "`i` = 5L and `month` = 1L"),
        ("i <=> null or i is distinct from 5", "`i` is null or not (`i` <=> 5L)"),
        ("1 = 1 and 'a' < 'b'", "true and true"),
        ("(i = 1 or i = 2) and i = 3", "(`i` = 1L or `i` = 2L) and `i` = 3L"),
        ("n = 'x'", "`n` = 'x'"),
        ("f > 1e-999999999 or f = -0e0", "`f` > 0.0D or `f` = -0.0D"),
        ("i = -128Y", "`i` = -128L"),
        ("i > -9223372036854775808L", "`i` > cast('-9223372036854775808' as bigint)"),
        ("m = 1e2", "`m` = cast('100.00' as decimal(38,2))"),
        ("i < 1e-1", "`i` < 1L"),
        (f"i < {10**60}", "`i` >= cast('-9223372036854775808' as bigint)"),
        ("i = cast(1e2 as int)", "`i` = 100L"),
        ("m = cast(1e-1 as decimal(2,1))", "`m` = cast('0.10' as decimal(38,2))"),
        ("1e0 = 1 and 9007199254740993 = 9007199254740992e0", "true and true"),
        (
            "i = 9007199254740992e0",
            "`i` >= 9007199254740992L and `i` <= 9007199254740993L",
        ),
        (
            "i not in (9007199254740993, 1e0)",
            "not (`i` in (1L) or (`i` >= 9007199254740992L and `i` <= 9007199254740993L))",
        ),
    ],
)
def test_what_is_understood(sql: str, expected: str) -> None:
    condition = parse_condition(sql, SCHEMA)
    assert to_sql(condition) == expected
    assert parse_condition(expected, SCHEMA) == condition


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("ii = 5", "Unknown column `ii` in the condition; did you mean `i`?"),
        ("i = '5'", "Column `i` is of class signed integer and cannot be compared with '5'"),
        ("s = 5", "Column `s` is of class string"),
        ("b = 1", "Column `b` is of class bool"),
        ("f = 9007199254740993", "only up to 2**53"),
        ("f > 1e400", "out of the range of a double"),
        ("f > 1e400D", "out of the range of a double"),
        ("i > 1e999999999", "out of the range of a double"),
        ("m > cast('1e401' as decimal(38,2))", "out of the range of every class"),
        ("i = 1.5D", "Column `i` is of class signed integer"),
        (f"n in ({10**38})", "a number has at most 38 digits"),
        ("s = 1e2", "cannot be compared with 100.0 (number)"),
        (f"s = 0.{'1' * 5000}", "cannot be compared with 0.111"),
        ("s = 0.1", "cannot be compared with 0.1 (number)"),
        ("i = cast('NaN' as bigint)", "`NaN` is not an integer"),
        ("m = cast('-inf' as decimal(10,2))", "`-inf` is not a number"),
        ("i = cast('1_0' as int)", "`1_0` is not an integer"),
        ("i = cast('١' as int)", "is not an integer"),
        ("f = cast('١' as double)", "is not a number"),
        ("i = cast('1e5' as bigint)", "`1e5` is not an integer"),
        ("m > 1.505", "Spark would round 1.505 to compare it: write at most 2 digits"),
        ("m in (1, 1.505)", "Spark would round 1.505"),
        ("i = 0.00000000000000000001", "write at most 18 digits"),
        ("m = cast(0 as decimal(38,0))", "Spark would round column `m`"),
        (f"m in (1, 1{'0' * 36})", "Spark would round column `m`"),
        ("z = '2024-01-01 00:00:00 America/Argentina'", "is not a timestamp"),
        (f"z = '2024-01-01 00:00:00 {'a/' * 500}b'", "is not a timestamp"),
        ("z = '2024-01-01 00:00:00 Mars/Phobos'", "is not a timestamp"),
        ("z = timestamp_ntz '2024-01-01 00:00:00+01:00'", "which Spark ignores in a timestamp_ntz"),
        ("z = '2024-01-01 00:00:00+19:00'", "is not a timestamp"),
        ("z = '2024-01-01 00:00:00-01:60'", "is not a timestamp"),
        ("d = '２０２４-01-01'", "write 'YYYY-MM-DD'"),
        ("t = '２０２４-01-01 00:00:00'", "is not a timestamp"),
        ("s = 'a\ud800'", "'\\ud800' is half of a surrogate pair"),
        ("d = timestamp '2013-01-01 00:00:00'", "Column `d` is of class date"),
        ("d = '2013'", "write 'YYYY-MM-DD'"),
        ("t = date '2013-01-01'", "Column `t` is of class timestamp"),
        ("t = '2013-01-01 00:00:00+01:00'", "the column has no time zone"),
        ("t = 'yesterday'", "is not a timestamp"),
        ("x = 'abc'", "X'..'"),
        ("l = 1", "Column `l` is a list"),
        ("i = null", "use `is null`"),
        ("i in (1, null)", "use `is null`"),
        ("i = i", "compares two columns"),
        ("abs(i) = 5", "`ABS(i)` is not supported: a condition may hold"),
        ("i + 1 = 5", "`i + 1` is not supported"),
        ("cast(i as bigint) = 5", "`CAST(i AS BIGINT)` is not supported"),
        ("cast('7.5' as bigint) = i", "`7.5` is not an integer"),
        ("cast(7.5 as bigint) = i", "would change the value"),
        ("i in (select 1)", "is not supported"),
        ("i between symmetric 1 and 2", "is not supported"),
        ("s rlike 'x'", "is not supported"),
        ("s like all ('x')", "is not supported"),
        (r"s like 'a\\b'", "escapes 'b'"),
        ("s like 'a' escape '\U0001f600'", "is not supported"),
        ("i like '1%'", "needs a string column"),
        ("i", "is of class signed integer and no condition"),
        ("q.i = 1", "`q.i` is not a column"),
        ("i = 5; i = 6", "expected one, found 2"),
        ("i = 5; drop table x", "is not a condition"),
        ("i =", "is not a condition: something is missing. Line 1"),
        ("i = 'x", "is not a condition"),
        ("", "is not a condition"),
        ("select 1", "is not a condition"),
        ("s = 'it''s'", "write a quote within a text"),
    ],
)
def test_what_is_refused(sql: str, message: str) -> None:
    with pytest.raises(ConditionError) as error:
        parse_condition(sql, SCHEMA)
    assert message in str(error.value)


def _with_exponent(number: float) -> str:
    text = repr(number)
    return text if "e" in text else f"{text}e0"


_DOUBLES = [0.1, 0.01, 1.5, 100.0, 1e-9, 2.0**53, 1e16, 2.0**63, 1e23, 9.999999999999998e27, 1e40]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([pa.int64(), pa.uint64(), *(pa.decimal128(38, s) for s in (0, 2, 10, 38))]),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "<=>"]),
    st.sampled_from(_DOUBLES) | st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-3, 3),
    st.booleans(),
)
def test_exact_numbers_are_rounded_to_compare_them_with_doubles(
    t: pa.DataType, op: str, number: float, away: int, mirrored: bool
) -> None:
    number = -number if mirrored else number
    scale = t.scale if pa.types.is_decimal(t) else 0
    if pa.types.is_integer(t):
        low, high = (0, 2**64 - 1) if t == pa.uint64() else (-(2**63), 2**63 - 1)
    else:
        low, high = 1 - 10**38, 10**38 - 1
    near = [Fraction(math.nextafter(number, end)) for end in (-math.inf, number, math.inf)
            if math.isfinite(math.nextafter(number, end))]  # fmt: skip
    steps = [round(value * 10**scale) + away for value in (*near, sum(near[:2]) / 2)]
    steps = [min(max(step, low), high) for step in (*steps, 0, low, high)]
    exact = Context(prec=100)
    values = [Decimal(step).scaleb(-scale, exact) if scale else step for step in steps]
    table = pa.table({"v": pa.array([*values, None], t)})
    found = evaluate(
        parse_condition(f"v {op} {_with_exponent(number)}", table.schema), table
    ).to_pylist()
    compare = OPERATIONS["=" if op == "<=>" else op]
    expected = [compare(float(Fraction(step, 10**scale)), number) for step in steps]
    assert found == [*expected, False if op == "<=>" else None]


def test_patterns() -> None:
    assert parse_condition("s like 'a!%b%' escape '!'", SCHEMA) == StartsWith("s", "a%b")
    assert parse_condition("s not like 'a_%'", SCHEMA) == Not(Like("s", "a_%"))
    assert parse_condition("s like 'abc'", SCHEMA) == Like("s", "abc")


def test_names_with_a_qualifier_and_zones() -> None:
    condition = parse_condition("q.i = 1 and i is null", SCHEMA, qualifier="q")
    assert isinstance(condition, And) and condition.items[1] == IsNull("i")
    assert to_sql(condition, "q") == "`q`.`i` = 1L and `q`.`i` is null"
    zoned = parse_condition("z = '2013-01-01 00:00'", SCHEMA, dialect=Dialect("Europe/Berlin"))
    assert to_sql(zoned).endswith("'2012-12-31 23:00:00.000000+00:00'")


def test_long_chains() -> None:
    sql = " or ".join(f"i = {n}" for n in range(2000))
    condition = parse_condition(sql, SCHEMA)
    assert isinstance(condition, Or) and len(condition.items) == 2000


@settings(max_examples=100, deadline=None)
@given(CONDITIONS, TABLES)
def test_written_and_read_back(condition: Condition, table: pa.Table) -> None:
    again = parse_condition(to_sql(condition), ROW_SCHEMA)
    assert evaluate(again, table).equals(evaluate(condition, table))


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_texts_survive_quoting(text: str) -> None:
    text = text.encode("utf-8", "ignore").decode()
    schema = pa.schema([("s", pa.string())])
    condition = comparison("s", pa.string(), "=", text)
    assert parse_condition(to_sql(condition), schema) == condition
    prefix = StartsWith("s", text)
    assert parse_condition(to_sql(prefix), schema) == prefix


@settings(max_examples=100, deadline=None)
@given(st.floats(allow_nan=False), st.integers(-(2**63), 2**63 - 1), st.binary())
def test_numbers_and_bytes_survive_quoting(number: float, integer: int, data: bytes) -> None:
    schema = pa.schema([("f", pa.float64()), ("i", pa.int64()), ("x", pa.binary())])
    for name, value in (("f", number), ("i", integer), ("x", data)):
        condition = comparison(name, schema.field(name).type, "=", value)
        assert parse_condition(to_sql(condition), schema) == condition


def test_quoting() -> None:
    assert quote_identifier("a`b") == "`a``b`"
    assert quote_literal(pa.scalar("x'; drop table y --\\")) == r"'x\'; drop table y --\\'"
    assert quote_literal(pa.scalar(-math.inf)) == "cast('-Infinity' as double)"
    assert quote_literal(pa.scalar(-(2**63))) == "cast('-9223372036854775808' as bigint)"
    assert quote_literal(pa.scalar(2**64 - 1, pa.uint64())) == (
        "cast('18446744073709551615' as decimal(20,0))"
    )
    assert quote_literal(pa.scalar(None, pa.int8())) == "null"
    with pytest.raises(ConditionError):
        quote_literal(pa.scalar([1]))
    with pytest.raises(ConditionError):
        quote_literal(pa.scalar(10**7, pa.int32()).cast(pa.date32()))
    assert parse_condition("true", SCHEMA) == TrueCondition()
    assert isinstance(parse_condition("u > -1", SCHEMA), Comparison)


@pytest.mark.parametrize("form", ["{} = 1", "i = 1 and {} = 1", "({} = 1) or i = 2", "not {} > 0"])
@pytest.mark.parametrize(
    "name", ["comment", "desc", "set", "use", "cache", "refresh", "load", "merge", "commit", "copy"]
)
def test_a_column_may_be_named_like_a_statement(name, form, caplog):
    schema = pa.schema([(name, pa.int64()), ("i", pa.int64())])
    assert parse_condition(form.format(name), schema) == parse_condition(
        form.format(f"`{name}`"), schema
    )
    assert caplog.text == ""


@pytest.mark.parametrize("form", ["{} = 1", "i = 1 and {} = 1", "({} = 1) or i = 2"])
@pytest.mark.parametrize(
    "name", ["when", "values", "case", "select", "from", "then", "on", "Drop", "current_date"]
)
def test_a_word_that_needs_backticks_is_named_and_they_help(name, form):
    schema = pa.schema([(name, pa.int64()), ("i", pa.int64())])
    with pytest.raises(ConditionError) as error:
        parse_condition(form.format(name), schema)
    said = str(error.value)
    assert said.endswith(f"In a condition, this column needs backticks: `{name}`")
    assert not re.search("Token|class|Command", said)
    parse_condition(form.format(f"`{name}`"), schema)
