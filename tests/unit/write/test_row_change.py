"""Statements that change rows, cut into their parts without Spark."""

from __future__ import annotations

import re

import pytest

from ktk_engine.change.candidates import equal_columns
from ktk_engine.change.change_rows import fit_clauses
from ktk_engine.errors import ConfigurationError
from ktk_engine.sql.dialect import DEFAULT  # deep: what names mean
from ktk_engine.sql.read_row_change import read_action  # deep: what is read
from ktk_engine.sql.row_change import Clause, RowChange  # deep: what is read
from ktk_engine.sql.statement import read_statement  # deep: what is read

ALONE = "not matched by source"


def parse_row_change(text):
    return read_statement(text).command.change


@pytest.mark.parametrize(
    ("text", "alias", "condition"),
    [
        ("delete from an.t", "t", ""),
        ("DELETE FROM an.`a t` WHERE x = 'where' -- gone", "a t", "x = 'where'"),
        (
            "delete from an.t as u where u.where = r'set' and y in (select a from b where c)",
            "u",
            None,
        ),
        ("/* dbt */ delete from t v where a = 1L", "v", "a = 1L"),
    ],
)
def test_deletes(text, alias, condition):
    condition = text.partition("u where ")[2] if condition is None else condition
    assert parse_row_change(text) == RowChange(
        "delete", alias, (Clause(ALONE, "delete", condition),)
    )


def test_updates():
    text = """update an.t as x set x.a = case when a = 1 then 2 else 3 end, `b ``c` = f(1, 2),
        d = default, E == (select max(y) from z where q = 1) where a = 1 or b between 1 and 2"""
    (clause,) = parse_row_change(text).clauses
    assert clause.values == {
        "a": "case when a = 1 then 2 else 3 end",
        "b `c": "f(1, 2)",
        "d": "null",
        "E": "(select max(y) from z where q = 1)",
    }
    assert (clause.kind, clause.action) == (ALONE, "update")
    assert clause.condition == "a = 1 or b between 1 and 2"
    assert str(parse_row_change(text)) == "update where a = 1 or b between 1 and 2"
    assert str(parse_row_change("update t set a = 1")) == "update all rows"


def test_merges():
    change = parse_row_change(
        """merge into an.t t using (select *, case when x then 1 end as `when` from s on) as s
        on t.k = s.k and s.when = case when t.a then 1 end
        when matched and s.a between 1 and 2 and t.matched then delete
        when matched then update set *
        when not matched by target and s.k > 1 then insert (k, t.a) values (s.k, f(s.a, 1))
        when not matched then insert *
        when not matched by source and t.a = 'then' then update set a = t.a + 1, b = default
        when not matched by source then delete"""
    )
    assert change.using == "(select *, case when x then 1 end as `when` from s on) as s"
    assert (change.target, change.source) == ("t", "s")
    assert change.on == "t.k = s.k and s.when = case when t.a then 1 end"
    assert change.clauses == (
        Clause("matched", "delete", "s.a between 1 and 2 and t.matched"),
        Clause("matched", "update", "", None),
        Clause("not matched", "insert", "s.k > 1", {"k": "s.k", "a": "f(s.a, 1)"}),
        Clause("not matched", "insert", "", None),
        Clause(ALONE, "update", "t.a = 'then'", {"a": "t.a + 1", "b": "null"}),
        Clause(ALONE, "delete"),
    )
    assert str(change) == f"merge on {change.on}"
    before = parse_row_change(
        "with c as (select 1), d as (select 2) merge into t using c on true {d}".replace(
            "{d}", "when matched then delete"
        )
    )
    assert (before.ctes, before.using) == ("with c as (select 1), d as (select 2)", "c")
    whole = parse_row_change("merge into an.t using an.s on true when matched then delete")
    assert (whole.target, whole.source, whole.using) == ("t", "s", "an.s")
    assert whole.deletes_all_matched and not change.deletes_all_matched


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("with c as (select 1) delete from t", "WITH before DELETE"),
        ("update t set a = 1, A = 2", "column `A` gets two values"),
        ("update t set s.f = 1", r"`s.f` is not a column of the table(.|\n)*named_struct"),
        ("{m} when matched and exists (select 1) then delete", "a subquery in a condition"),
        (
            "{m} when matched then delete when matched then update set a = 1",
            "has to be the last of its",
        ),
        ("{m} when not matched by source then update set *", "name the columns"),
        ("{m} when not matched then insert (a, b) values (1)", "names 2 columns and gives 1"),
        ("merge with schema evolution into t using s on true", "alter table ... add columns"),
    ],
)
def test_what_is_not_supported(text, message):
    command = read_statement(text.replace("{m}", "merge into t using s on t.k = s.k")).command
    assert re.search(rf"{message}(.|\n)*Nothing was written", command.problem)


def test_actions():
    assert read_action("DELETE", "t", "t.a = 1") == Clause(ALONE, "delete", "t.a = 1")
    found = read_action("update set t.a = 1, b = now()", "t")
    assert found == Clause(ALONE, "update", "", {"a": "1", "b": "now()"})
    for text in ("drop", "delete from t", "update a = 1", "update set", "update set a", "'", ""):
        with pytest.raises(ConfigurationError):
            read_action(text, "t")


def test_columns_that_have_to_be_equal():
    stored, given = ("k", "Day", "v", "a b"), ("K", "day", "w", "id")

    def equal(on):
        return equal_columns(on, "t", stored, "S", given)

    assert equal("t.k = s.k and (s.DAY = (t.day) and t.v > s.w)") == {"k": "K", "Day": "day"}
    assert equal("v = w and `a b` = id and t.v = s.id") == {"v": "w", "a b": "id"}
    for on in (
        "k = id",  # both have it
        "t.k = s.k or true",
        "not t.k = s.k",
        "t.k <=> s.k",
        "t.k = s.k + 1",
        "t.v = t.k",
        "x.k = s.k",
        "t.nested.k = s.k",
        "t.none = s.k",
        "t.k = 1",
        "(((",
    ):
        assert equal(on) == {}, on


def test_columns_are_fitted():
    change = RowChange(
        "merge",
        "t",
        (Clause("matched", "update", "", {"A": "1"}), Clause("not matched", "insert", "", None)),
        "s`",
    )
    fitted = fit_clauses(change, "t", ["a", "b"], ["B", "a", "c"], DEFAULT)
    assert [clause.values for clause in fitted.clauses] == [
        {"a": "1"},
        {"a": "`s```.`a`", "b": "`s```.`B`"},
    ]
    with pytest.raises(ConfigurationError, match=r"no column `A`. It has: b"):
        fit_clauses(change, "t", ["b"], ["b"], DEFAULT)
    with pytest.raises(
        ConfigurationError, match=r"`insert \*` needs all of its columns(.|\n)*lacks b"
    ):
        fit_clauses(change, "t", ["a", "b"], ["a"], DEFAULT)
