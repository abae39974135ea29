"""Random deletes, updates and merges leave the rows that the same rules leave in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktk_engine.errors import DataError
from ktk_engine.spark.frames import frame_of_table
from tests.spark.changing import run
from tests.support.changes import WriteRequest, build
from tests.support.random_cubes import examples
from tests.support.spark import statements
from tests.support.stores import LocalStore, tree

pytestmark = pytest.mark.usefixtures("few_rows")

Row = dict[str, Any]
TYPES = {"P": pa.string(), "L": pa.int64(), "v": pa.float64(), "a b": pa.string()}
SCHEMA = pa.schema(TYPES)
TABLE = WriteRequest("t", partition_by=("P",), indexes=("a b",))
CUBE = WriteRequest("t", "seed", "c", ("L",), ("P",))
VALUES: dict[str, list[Any]] = {
    "P": ["a/b", "50%", "x=y", ""],
    "L": [0, 1, 2, 3, 2**53 + 1],
    "v": [None, math.nan, -0.0, 1.5, -2.0],
    "a b": [None, "", "'", "ä%"],
}


def _equal(a: Any, b: Any) -> bool | None:
    if a is None or b is None:
        return None
    return a == b or (a != a and b != b)


def _less(a: Any, b: Any) -> bool | None:
    """In SQL, NaN is the largest number."""
    if a is None or b is None:
        return None
    return a == a and (b != b or a < b)


def _both(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


# Conditions in SQL and in Python: of a stored row, of a source row, of both.
STORED: dict[str, Callable[[Row], bool | None]] = {
    "": lambda t: True,
    "t.v < 1": lambda t: _less(t["v"], 1),
    "t.P in ('', 'a/b') and t.L > 0": lambda t: t["P"] in ("", "a/b") and t["L"] > 0,
    "t.`a b` is null": lambda t: t["a b"] is None,
    "case when t.L = 1 then t.v > 1 else t.P = '50%' end": lambda t: (
        _less(1, t["v"]) if t["L"] == 1 else t["P"] == "50%"
    ),
}
GIVEN: dict[str, Callable[[Row], bool | None]] = {
    "": lambda s: True,
    "s.v < 1": lambda s: _less(s["v"], 1),
    "`a b` != ''": lambda s: None if s["a b"] is None else s["a b"] != "",
}
PAIRS: dict[str, Callable[[Row, Row], bool | None]] = {
    "": lambda t, s: True,
    "t.v < s.v": lambda t, s: _less(t["v"], s["v"]),
    "s.v is null and t.P = s.P": lambda t, s: s["v"] is None and t["P"] == s["P"],
}
ON: dict[str, Callable[[Row, Row], bool | None]] = {
    "t.L = s.L": lambda t, s: t["L"] == s["L"],
    "t.L = s.L and s.P = t.P": lambda t, s: t["L"] == s["L"] and t["P"] == s["P"],
    "t.`a b` = s.`a b`": lambda t, s: _equal(t["a b"], s["a b"]),
    "t.v = s.v and t.P = ''": lambda t, s: _both(_equal(t["v"], s["v"]), t["P"] == ""),
    "t.L = s.L + 1 or false": lambda t, s: t["L"] == s["L"] + 1,
}
# Assignments in SQL and in Python; the second ones need a source row.
ALONE: dict[str, Callable[[Row, Row | None], Row]] = {
    "v = t.v + 1": lambda t, s: {"v": None if t["v"] is None else t["v"] + 1},
    "`a b` = t.P, P = 'neu/'": lambda t, s: {"a b": t["P"], "P": "neu/"},
}
TAKEN: dict[str, Callable[[Row, Row | None], Row]] = {
    **ALONE,
    "t.v = s.v, `a b` = concat(s.P, '!')": lambda t, s: {"v": s["v"], "a b": s["P"] + "!"},
    "*": lambda t, s: dict(s),
}
INSERTED: dict[str, Callable[[Row], Row]] = {
    "*": dict,
    "(L, P, v) values (L + 10, s.P, 0.5)": lambda s: {
        "L": s["L"] + 10,
        "P": s["P"],
        "v": 0.5,
        "a b": None,
    },
}

some_rows = st.lists(st.fixed_dictionaries({n: st.sampled_from(v) for n, v in VALUES.items()}))
one_of = st.sampled_from
unmatched = st.tuples(one_of(sorted(STORED)), one_of(["delete", *ALONE]))
matched = st.tuples(one_of(sorted(PAIRS)), one_of(["delete", *TAKEN]))
inserted = st.tuples(one_of(sorted(GIVEN)), one_of(sorted(INSERTED)))


def conditions_first(clauses: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """A clause without a condition has to be the last one."""
    return sorted(clauses, key=lambda clause: not clause[0])[: 1 + sum(bool(c) for c, _ in clauses)]


def clauses_of(one: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(one, max_size=2).map(conditions_first)


class Refused(Exception):
    """Several source rows would change one row, or two rows would have one cell."""


def expected(old: list[Row], new: list[Row] | None, plan: Row) -> list[Row]:
    """What a naive reader of the statement does."""
    result, on = [], ON[plan["on"]]
    for t in old:
        partners = [s for s in new or () if on(t, s) is True]
        if not partners:
            taken = [a for c, a in plan["unmatched"] if STORED[c](t) is True][:1]
            changes = [None if a == "delete" else {**t, **ALONE[a](t, None)} for a in taken]
        else:
            changes = []
            for s in partners:
                taken = [a for c, a in plan["matched"] if PAIRS[c](t, s) is True][:1]
                changes += [None if a == "delete" else {**t, **TAKEN[a](t, s)} for a in taken]
            if len(changes) > 1 and plan["matched"][0] != ("", "delete"):
                raise Refused
        result.append(changes[0] if changes else t)
    result = [row for row in result if row is not None]
    for s in new or ():
        if not any(on(t, s) is True for t in old):
            taken = [a for c, a in plan["inserted"] if GIVEN[c](s) is True][:1]
            result += [INSERTED[a](s) for a in taken]
    return result


def statement(plan: Row) -> str:
    def when(kind: str, condition: str) -> str:
        return f" when {kind}{f' and {condition}' if condition else ''} then "

    def change(action: str) -> str:
        return "delete" if action == "delete" else f"update set {action}"

    text = f"merge into an.t t using an.s as s on {plan['on']}"
    for condition, action in plan["matched"]:
        text += when("matched", condition) + change(action)
    for condition, action in plan["inserted"]:
        text += when("not matched", condition) + f"insert {action}"
    for condition, action in plan["unmatched"]:
        text += when("not matched by source", condition) + change(action)
    return text


def shown(found: list[Row]) -> list[tuple[str, ...]]:
    def one(value: Any) -> str:
        return repr(0.0 if value == 0 else value)

    return sorted(tuple(one(row[name]) for name in TYPES) for row in found)


def cells(rows: list[Row]) -> dict[tuple[Any, Any], Row]:
    return {(row["P"], row["L"]): row for row in rows}


def put(sql, store: LocalStore, target: WriteRequest, rows: list[Row], mode: Any = None) -> None:
    frame = frame_of_table(sql.session, pa.Table.from_pylist(rows, SCHEMA))
    build(store, frame, target, mode=mode)


def check(
    sql, store: LocalStore, text: str, old: list[Row], new: list[Row] | None, plan: Row, cube: bool
) -> None:
    before = tree(store.root)
    try:
        wanted = expected(old, new, plan)
        if cube and len(cells(wanted)) < len(wanted):
            raise Refused
    except Refused:
        try:
            run(sql, store, text)
        except DataError:
            assert tree(store.root) == before
            return
        raise AssertionError(f"not refused: {text}") from None
    done = run(sql, store, text)
    found = [row.asDict() for row in sql.sql("select * from an.t").collect()]
    assert shown(found) == shown(wanted), text
    if done is None:
        assert shown(wanted) == shown(old)
    else:
        changes = done.changes
        assert len(wanted) == len(old) + changes.inserted - changes.deleted


@examples(6)
@given(
    st.data(),
    st.booleans(),
    some_rows,
    some_rows,
    st.fixed_dictionaries(
        {
            "on": one_of(sorted(ON)),
            "matched": clauses_of(matched),
            "inserted": clauses_of(inserted),
            "unmatched": clauses_of(unmatched),
        }
    ),
)
def test_merges(sql, tmp_path_factory, data, cube, old, new, plan) -> None:
    if not (plan["matched"] or plan["inserted"] or plan["unmatched"]):
        plan = {**plan, "matched": [("", "*")]}
    store = LocalStore(tmp_path_factory.mktemp("merge") / "analytics")
    sql = statements(sql.session, store, sql.scratch)
    target, half = (CUBE if cube else TABLE), data.draw(st.integers(0, len(old)))
    first, second = old[:half], old[half:]
    if cube:  # of a cell in both, the second row counts
        first, second = list(cells(first).values()), list(cells(second).values())
        old = list({**cells(first), **cells(second)}.values())
    put(sql, store, target, first)
    put(sql, store, target, second, "append")
    put(sql, store, WriteRequest("s"), new)
    check(sql, store, statement(plan), old, new, plan, cube)


@examples(4)
@given(
    st.booleans(),
    some_rows,
    one_of(sorted(STORED)),
    one_of(["delete", *ALONE]),
)
def test_deletes_and_updates(sql, tmp_path_factory, cube, old, condition, action) -> None:
    store = LocalStore(tmp_path_factory.mktemp("change") / "analytics")
    sql = statements(sql.session, store, sql.scratch)
    if cube:
        old = list(cells(old).values())
    put(sql, store, CUBE if cube else TABLE, old)
    where = f" where {condition}" if condition else ""
    text = "delete from an.t t" if action == "delete" else f"update an.t as t set {action}"
    plan = {"on": "t.L = s.L", "unmatched": [(condition, action)], "matched": [], "inserted": []}
    check(sql, store, text + where, old, None, plan, cube)
