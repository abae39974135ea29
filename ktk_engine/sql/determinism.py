"""Finds what keeps a text from giving the same rows of the same relations.

It reads tokens and allows what it knows, so what Spark might read differently is reported.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ktk_engine.sql.dialect import LEFT_TO_SPARK
from ktk_engine.sql.spark_functions import DETERMINISTIC, WITHOUT_PARENTHESES
from ktk_engine.sql.statement import read_statement
from ktk_engine.sql.stored_text import is_call
from ktk_engine.sql.token import Token, name_of, text_of, tokenize

# Spark reads such a text as the day or time of the run, where it becomes a date or timestamp.
_DAY = re.compile(r"(now|today|yesterday|tomorrow)(?![a-z])", re.IGNORECASE)
_QUOTES = re.compile("['\"]")  # Spark 3.5 joins `'to''day'`
# With literals alone, each of them gives no text but one of its arguments, if it gives any.
_PLAIN = """
    abs acos add_months any any_value approx_count_distinct approx_percentile array array_agg
    array_contains array_distinct array_max array_min array_sort array_union asin atan atan2 avg
    bigint bool_and bool_or boolean bround cast cbrt ceil ceiling coalesce collect_list
    collect_set contains corr cos count count_if cume_dist date date_add date_diff
    date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day dayofmonth
    dayofweek dayofyear dec decimal degrees dense_rank double e element_at endswith equal_null
    every exists exp explode explode_outer extract factorial first first_value flatten float
    floor from_utc_timestamp get greatest grouping grouping_id hash hour if ifnull int isnan
    isnotnull isnull lag last last_day last_value lcase lead least len length like ln log log10
    log2 lower make_date make_dt_interval make_interval make_timestamp make_timestamp_ltz
    make_timestamp_ntz make_ym_interval map max max_by md5 median min min_by minute mod month
    months_between named_struct nanvl nth_value ntile nullif nullifzero numeric nvl nvl2
    percent_rank percentile percentile_approx percentile_cont pi pmod posexplode
    posexplode_outer pow power quarter radians range rank regexp_like rint rlike round
    row_number second sequence sha sha1 sha2 sign signum sin size slice smallint some sort_array
    sqrt stack startswith stddev stddev_pop stddev_samp string struct sum tan timestamp
    timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff tinyint
    to_date to_number to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp
    to_utc_timestamp trunc try_add try_cast try_divide try_multiply try_subtract try_to_date
    try_to_number try_to_timestamp ucase unix_date unix_micros unix_millis unix_seconds
    unix_timestamp upper var_pop var_samp variance weekday weekofyear xxhash64 year zeroifnull
"""
_WITHOUT_TEXT = frozenset(_PLAIN.split())
# Words that never name a column.
_WORDS = """
    ALL AND ANY ASC BETWEEN BOTH BY CASE COLLATE DESC DISTINCT DIV ELSE END ESCAPE EXISTS FALSE
    FILTER FROM IGNORE ILIKE IN INTERVAL IS LEADING LIKE NOT NULL NULLS OR ORDER OVER PARTITION
    REGEXP RESPECT RLIKE SELECT THEN TO TRAILING TRUE VALUES WHEN WHERE WITHIN
"""
_NO_COLUMNS = frozenset(_WORDS.split())
# Words before types and units, where no column can be.
_BEFORE_TYPES = frozenset({"::", "TO", "INTERVAL"})
# What an operand of `||` does not go beyond.
_SIGNS = """
    , ; = == <=> != <> < <= > >= -> => |> SELECT FROM WHERE GROUP BY HAVING ORDER QUALIFY LIMIT AND
    OR NOT ON WHEN THEN ELSE CASE END AS IN BETWEEN LIKE ILIKE RLIKE UNION EXCEPT INTERSECT VALUES
    DISTINCT ALL
"""
_ENDS = frozenset(_SIGNS.split())
_OPENING, _CLOSING = frozenset("(["), frozenset(")]")


@dataclass(frozen=True)
class Unknown:
    """What may give other rows in another run."""

    what: str  # as a predicate: `calls rand`
    line: int  # of the text, from 1; 0 for no single line

    def __str__(self) -> str:
        return f"{self.what} (line {self.line})" if self.line else self.what


def unknowns(sql: str, functions: Collection[str] = ()) -> list[Unknown]:
    """Find what a text may compute differently from the same relations, each thing once.

    `functions` are the names, in lower case, of functions whose definitions are judged elsewhere.
    """
    found: dict[str, Unknown] = {}
    for what, start in _problems(sql, tokenize(sql), functions):
        found.setdefault(what, Unknown(what, sql.count("\n", 0, start) + 1))
    return list(found.values())


def _problems(
    sql: str, tokens: Sequence[Token], functions: Collection[str]
) -> Iterator[tuple[str, int]]:
    if left := LEFT_TO_SPARK.search(sql):
        yield f"has `{sql[left.start() : left.end()][:20]}`, which Spark replaces", left.start()
    words = [token.word for token in tokens]
    by_text = {item.start for item in read_statement(sql, tokens).references}
    pairs = _pairs(words)
    for at, token in enumerate(tokens):
        behind = words[at + 1] if at + 1 < len(words) else ""
        if token.kind == "text":
            yield from _day(sql, tokens, at)
            if behind == "(" and sql[token.start] == '"':  # in some sessions it is a name
                yield f"calls {sql[token.start : token.end]}", token.start
        elif token.word == "||":
            if _is_constant(tokens, words, *_operands(words, at, pairs)):
                yield "joins texts, which may name the day of the run", token.start
        elif token.word == "TABLESAMPLE":
            yield "reads a sample", token.start
        elif token.word == "USING" and tokens[at + 1 : at + 2] and tokens[at + 1].kind == "text":
            yield "runs a program", token.start
        elif not token.is_name or token.start in by_text:
            continue
        elif behind != "(":
            name = name_of(sql, token).lower()
            is_other = at and words[at - 1] in (".", "AS") and name != "_metadata"
            if name in WITHOUT_PARENTHESES and not is_other:
                yield f"reads `{name}`", token.start
        elif is_call(tokens, words, at):
            yield from _call(sql, tokens, words, at, pairs.get(at + 1, len(words)), functions)


def _call(
    sql: str,
    tokens: Sequence[Token],
    words: Sequence[str],
    at: int,
    end: int,
    functions: Collection[str],
) -> Iterator[tuple[str, int]]:
    """What a call may do; `end` is the place of its last parenthesis."""
    name = name_of(sql, tokens[at]).lower()
    if name in functions:
        return
    is_known = name in DETERMINISTIC | _TYPES and (not at or words[at - 1] != ".")
    if not is_known or (name == "unix_timestamp" and end == at + 2):
        yield f"calls `{name}`, which is not known to be deterministic", tokens[at].start
    elif name not in _WITHOUT_TEXT and _is_constant(tokens, words, at + 2, end):
        yield f"computes a text (`{name}`), which may name the day of the run", tokens[at].start


# Types and syntax with parentheses, of which `is_call` is not sure.
_TYPES = frozenset({"cast", "dec", "numeric", "timestampadd", "timestampdiff", "try_cast"})


def _day(sql: str, tokens: Sequence[Token], at: int) -> Iterator[tuple[str, int]]:
    """A text that Spark may read as the day of the run; adjacent literals are one text."""
    if at and tokens[at - 1].kind == "text":
        return
    end = at + 1
    while end < len(tokens) and tokens[end].kind == "text":
        end += 1
    text = text_of(sql, tokens[at:end])
    if at and tokens[at - 1].word == "X":
        with contextlib.suppress(ValueError):  # Spark reports it
            text = bytes.fromhex(text).decode(errors="replace")
    if day := _DAY.match(_QUOTES.sub("", text).strip()):
        yield f"names the day of the run ('{day[0]}')", tokens[at].start


def _pairs(words: Sequence[str]) -> dict[int, int]:
    """The place of the other parenthesis for each of a pair."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for at, word in enumerate(words):
        if word in _OPENING:
            opened.append(at)
        elif word in _CLOSING and opened:
            start = opened.pop()
            found |= {start: at, at: start}
    return found


def _operands(words: Sequence[str], at: int, pairs: Mapping[int, int]) -> tuple[int, int]:
    """From where to where an operator and its operands reach at most."""
    first, last = at, at + 1
    while first and words[first - 1] not in _ENDS | _OPENING:
        first = min(pairs.get(first - 1, first), first - 1)
    while last < len(words) and words[last] not in _ENDS | _CLOSING:
        last = max(pairs.get(last, last), last) + 1
    return first, last


def _is_constant(tokens: Sequence[Token], words: Sequence[str], first: int, last: int) -> bool:
    """Whether tokens name no column, so that Spark may compute them before it reads rows."""
    words = [*words[:last], ""]
    depth = type_at = 0  # how deep it is, and how deep a type or an alias begins
    for at in range(first, last):
        depth += (words[at] in _OPENING) - (words[at] in _CLOSING)
        type_at = 0 if depth < type_at - 1 else type_at
        if words[at] == "AS" and not type_at:
            type_at = depth + 1
        if type_at or not tokens[at].is_name or words[at] in _NO_COLUMNS:
            continue
        before = words[at - 1] if at else ""
        is_field = before == "." and at > 1 and words[at - 2] in _CLOSING
        is_unit = before in _BEFORE_TYPES or (at and tokens[at - 1].kind in ("text", "number"))
        is_typed = at + 1 < last and tokens[at + 1].kind == "text"  # date '...'
        if words[at + 1] != "(" and not (is_field or is_unit or is_typed):
            return False
    return True
