"""`alter table` and `comment on`: what is understood, and what is refused with the reason."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine.errors import ConfigurationError
from ktk_engine.sql.commands import Alter  # deep: what is read
from ktk_engine.sql.statement import read_statement  # deep: what is read
from ktk_engine.warehouse.alter_statement import Alteration, parse_alteration
from tests.support.changes import ColumnChanges, Notes

AB = ("a", "b")


def altered_relation(sql):
    command = read_statement(sql).command
    return tuple(command.name) if isinstance(command, Alter) else None


def columns(**changes) -> Alteration:
    return Alteration(AB, ColumnChanges(**changes))


def notes(**changes) -> Alteration:
    return Alteration(AB, notes=Notes(**changes))


STATEMENTS = {
    "alter table a.b add column x int": columns(add={"x": pa.int32()}),
    r"ALTER TABLE `a`.b ADD COLUMNS (x decimal(10,2) COMMENT 'it\'s', `y z` array<array<int>>)": (
        columns(
            add={"x": pa.decimal128(10, 2), "y z": pa.list_(pa.list_(pa.int32()))},
            comments={"x": "it's"},
        )
    ),
    "alter table a.b add columns x map<string, double>, y timestamp_ntz": columns(
        add={"x": pa.map_(pa.string(), pa.float64()), "y": pa.timestamp("us")}
    ),
    "alter table a.b add column `comment` struct<`a b`: int, c: string> comment 'c'": columns(
        add={"comment": pa.struct([("a b", pa.int32()), ("c", pa.string())])},
        comments={"comment": "c"},
    ),
    "alter table a.b drop column x": columns(drop=("x",)),
    "alter table a.b drop columns (x, `y``z`)": columns(drop=("x", "y`z")),
    "alter table a.b drop column if exists x": Alteration(
        AB, ColumnChanges(drop=("x",)), lenient=True
    ),
    "alter table a.b rename column x to `größer 1`": columns(rename={"x": "größer 1"}),
    "alter table a.b alter column x type bigint": columns(types={"x": pa.int64()}),
    "alter table a.b alter column type type timestamp": columns(
        types={"type": pa.timestamp("us", tz="UTC")}
    ),
    "alter table a.b alter column x comment 'c'": notes(columns={"x": "c"}),
    "alter table a.b change column x comment ''": notes(columns={"x": ""}),
    "alter table a.b change column x x bigint comment 'c'": Alteration(
        AB, ColumnChanges(types={"x": pa.int64()}), Notes(columns={"x": "c"})
    ),
    "alter table a.b change x y string comment 'c'": columns(
        rename={"x": "y"}, types={"x": pa.string()}, comments={"y": "c"}
    ),
    "alter table a.b set tblproperties ('k' = 'v', k2 = -1, a.b = true, comment = 'c')": notes(
        set={"k": "v", "k2": "-1", "a.b": "true"}, comment="c"
    ),
    "alter table a.b unset tblproperties ('k', a.b)": notes(unset=["k", "a.b"]),
    "alter table a.b unset tblproperties if exists (comment)": notes(
        unset=[], lenient=True, comment=""
    ),
    "comment on table a.b is 'it''s' ' two';": notes(comment="it's two"),
    "comment on table a.b is null": notes(comment=""),
    "comment on column a.b.`c.d` is \"dq 'x'\"": notes(columns={"c.d": "dq 'x'"}),
    '/* {"app": "dbt"} */\n-- why\nalter  table a.b drop column x': columns(drop=("x",)),
}


@pytest.mark.parametrize("sql", STATEMENTS)
def test_statements(sql):
    assert altered_relation(sql) == AB
    assert parse_alteration(sql) == STATEMENTS[sql]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("alter table a.b add column x", "expected a type at the end"),
        ("alter table a.b add column x nosuch", "`nosuch` is not a type"),
        ("alter table a.b add column x int not null", "a column may always be null"),
        ("alter table a.b add column x int default 1", "a column may always be null"),
        ("alter table a.b add column x int first", "new columns come last"),
        ("alter table a.b add column x int after y", "new columns come last"),
        ("alter table a.b add columns (x int, X int)", "a column is named twice"),
        ("alter table a.b add columns (x int", "expected `)` at the end"),
        ("alter table a.b drop partition (p = 1)", "is not supported. Supported: add columns"),
        (
            "alter table a.b rename to c",
            "Table.rename renames a table, and a view is created again",
        ),
        ("alter table a.b rename column x.y to z", "`x.y` is a field of a column"),
        ("alter table a.b rename column x z", "expected `to` before `z`"),
        ("alter table a.b alter column x set not null", "`set not null` is not supported"),
        ("alter table a.b drop column x cascade", "`cascade` is not understood"),
        ("alter table a.b set tblproperties (k)", "expected a value before `)`"),
        ("alter table a.b set location 's3://x'", "is not supported"),
        ("comment on table a.b is x", "expected a string in quotes before `x`"),
    ],
)
def test_what_is_not_understood(sql, reason):
    assert altered_relation(sql) == AB
    with pytest.raises(ConfigurationError) as caught:
        parse_alteration(sql)
    assert reason in str(caught.value)
    assert "Nothing was changed." in str(caught.value)


@pytest.mark.parametrize(
    "sql",
    ["select 1", "", "alter view a.b as select 1", "select 'alter table a.b drop column x'",
     pytest.param("/* " * 3000 + "*/" + " " * 5000 + "-- x\n" * 5000 + "select 1", id="blanks"),
     "comment on schema a is 'x'", "alter table", "alter table 'x", "-- alter table a.b\nselect 1"],
)  # fmt: skip
def test_what_is_for_others(sql):
    assert altered_relation(sql) is None
