"""The SQL that `dbt.listagg(...)` compiles to."""

from __future__ import annotations

from typing import NamedTuple

from dbt_common.exceptions import DbtRuntimeError

from ktk_engine.sql.token import Token, tokenize

_DEPTH = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


class _Term(NamedTuple):
    expression: str
    descends: bool
    nulls_last: bool


def listagg_text(
    measure: str, delimiter: str, order_by: str | None, limit: int | None, has_listagg: bool
) -> str:
    """Write an aggregate that joins the values of a group without nulls; null if there are none.

    Lists replace Spark's `listagg` before 4.0 and for a limit, but cannot be window functions.
    Raises a `DbtRuntimeError` for an invalid order, or one that is not of distinct values.
    """
    if has_listagg and not limit:
        order = f" within group ({order_by})" if order_by else ""
        return f"listagg({measure}, {delimiter}){order}"
    words = tokenize(measure)
    is_distinct = len(words) > 1 and words[0].word == "DISTINCT"
    value = measure[words[0].end :].strip() if is_distinct else measure
    terms = _terms(order_by) if order_by else []
    if is_distinct and any(_words(term.expression) != _words(value) for term in terms):
        raise DbtRuntimeError(
            f"listagg: distinct values of {value} can only be ordered by {value}, but the clause "
            f"is: {order_by}. Order by {value} itself, or leave `distinct` out."
        )
    listed = _listed(value, terms, is_distinct)
    taken = f"slice({listed}, 1, {limit})" if limit else listed
    return f"case when count({value}) > 0 then array_join({taken}, {delimiter}) end"


def _listed(value: str, terms: list[_Term], is_distinct: bool) -> str:
    """Write the list of a group's values."""
    text = f"cast({value} as string)"
    keys = [f"'k{place}', {term.expression}" for place, term in enumerate(terms)]
    fields = ", ".join([*keys, f"'value', {text}"])
    item = f"named_struct({fields})" if terms else text
    listed = f"collect_list({item}) filter (where ({value}) is not null)"
    if is_distinct:
        listed = f"array_distinct({listed})"
    if not terms:
        return listed
    return f"transform({_sorted(listed, terms)}, item -> item.value)"


def _sorted(listed: str, terms: list[_Term]) -> str:
    """Sort structs by their first fields and nulls, fast if all directions are the same."""
    descends = terms[0].descends
    if all(term[1:] == (descends, descends) for term in terms):
        return f"sort_array({listed}, {str(not descends).lower()})"
    compared = "0"
    for place, term in reversed(list(enumerate(terms))):
        one, other = f"one.k{place}", f"other.k{place}"
        null, less = (1 if term.nulls_last else -1), (1 if term.descends else -1)
        compared = (
            f"case when {one} <=> {other} then {compared} when {one} is null then {null} "
            f"when {other} is null then {-null} when {one} < {other} then {less} else {-less} end"
        )
    return f"array_sort({listed}, (one, other) -> {compared})"


def _terms(order_by: str) -> list[_Term]:
    """Read an `order by` clause; a `DbtRuntimeError` if it is none."""
    tokens = tokenize(order_by)
    if [token.word for token in tokens[:2]] != ["ORDER", "BY"]:
        raise DbtRuntimeError(f"listagg: the order must begin with `order by`, but is: {order_by}")
    found: list[_Term] = []
    depth, term = 0, list[Token]()
    for token in tokens[2:]:
        depth += _DEPTH.get(token.word, 0)
        if token.word == "," and not depth:
            found.append(_term(order_by, term))
            term = []
        else:
            term.append(token)
    return [*found, _term(order_by, term)]


def _term(order_by: str, tokens: list[Token]) -> _Term:
    nulls = ""
    if len(tokens) > 2 and tokens[-2].word == "NULLS" and tokens[-1].word in ("FIRST", "LAST"):
        nulls = tokens[-1].word
        tokens = tokens[:-2]
    way = tokens[-1].word if len(tokens) > 1 and tokens[-1].word in ("ASC", "DESC") else ""
    if way:
        tokens = tokens[:-1]
    if not tokens:
        raise DbtRuntimeError(f"listagg: an expression is missing in the order: {order_by}")
    descends = way == "DESC"
    text = order_by[tokens[0].start : tokens[-1].end]
    return _Term(text, descends, nulls == "LAST" if nulls else descends)


def _words(sql: str) -> list[str]:
    return [token.word or sql[token.start : token.end] for token in tokenize(sql)]
