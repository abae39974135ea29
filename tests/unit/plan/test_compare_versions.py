"""Whether a change between two versions can matter to a question, by its text alone."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random

import duckdb
import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import KtkError
from ktk_engine.log.computed import Computed, versions_read  # deep: what a run notes
from ktk_engine.plan.statement.judge import why_computed_again
from ktk_engine.plan.statement.trace import trace
from ktk_engine.sql.dialect import DEFAULT  # deep: what texts mean
from tests.support.committed import cube_scope, resolve
from tests.support.documents import ViewDocument, add_view
from tests.support.queries import FileAddress, KnownStores, NamedRelations, quote_identifier
from tests.support.random_cubes import EVERY_COMMIT, TIMES
from tests.support.stores import LocalStore

VIEW = "select month, t_a as x from an.t where t_a > 0"
VIEW_OF_VIEW = "select * from v join c using (month)"
MONTHS, DAYS, ENRICHMENTS = (1, 2, 3), range(4), [f"e{n}" for n in range(20)]


def rows(chance: Random, name: str, months=MONTHS) -> pa.Table:
    """Some cells with two columns of a dataset; of the seed dataset, all cells."""
    cells = [(month, day) for month in months for day in DAYS]
    if name != "cells":
        cells = [cell for cell in cells if chance.random() < 0.8]
    values = [chance.choice([None, 0, 1, 2, 3]) for _ in range(2 * len(cells))]
    return pa.table(
        {
            "month": pa.array([month for month, _ in cells], pa.int64()),
            "day": pa.array([day for _, day in cells], pa.int64()),
            f"{name}_a": pa.array(values[::2], pa.int64()),
            f"{name}_b": pa.array(values[1::2], pa.int64()),
        }
    )


class Schema:
    """A cube of 20 enrichments and two tables, with views of them."""

    def __init__(self, folder, enrichments=ENRICHMENTS) -> None:
        self.chance = chance = Random(1)
        self.store = LocalStore(folder / "an")
        self.face = Store.of(self.store)
        self.seen: dict[str, tuple[Computed, object]] = {}
        self.known: dict[str, str] = {}
        self.base = duckdb.connect()
        datasets = {name: rows(chance, name) for name in ("cells", *enrichments)}
        self.face.build(
            "c", datasets, dimension_columns=["day"], partition_by=["month"], seed="cells"
        )
        add_view(self.store, ViewDocument("c", "cube", cube="c", datasets=tuple(datasets)))
        for table in ("t", "u"):
            self.face.write_table(table, rows(chance, table), partition_by=["month"])
        add_view(self.store, ViewDocument("v", "view", VIEW))
        add_view(self.store, ViewDocument("w", "view", VIEW_OF_VIEW))

    def relations(self) -> NamedRelations:
        return NamedRelations(KnownStores({"an": self.store}.get))

    def ask(self, question: str) -> None:
        """Note what a question reads now, with its rows."""
        found = trace(question, self.relations(), DEFAULT)
        read = versions_read(self.store, [found.reads()])
        # Of a dataset without a version, a note claims nothing of its own rows.
        note = Computed(0, "", datetime.now(UTC), found.work(), read)
        self.seen[question] = note, self.answer(question)

    def why(self, question: str) -> str:
        """The reason to ask it again."""
        note, _ = self.seen[question]
        own = resolve(self.store, cube_scope("c"))
        (uuid, item) = next(iter(own.datasets.items()))
        note = dataclasses.replace(note, version=item.entry.version, commit=item.entry.commit)
        found = trace(question, self.relations(), DEFAULT)
        return why_computed_again(note, own, uuid, found.work(), found)

    def answer(self, question: str):
        """The rows of a question by another program, or why it has none."""
        base = self.base
        base.execute("create schema if not exists an")
        for name in ("c", "t", "u"):
            try:
                relation = self.face.relation(name)
                version = str(relation.version)
            except KtkError as error:
                return type(error)
            if self.known.get(name) != version or relation.version == 1:
                base.register("given", relation.query().to_arrow())
                base.execute("drop view if exists an.w; drop view if exists an.v")
                base.execute(f"create or replace table an.{name} as select * from given")
                self.known[name] = version
        for name, text in (("v", VIEW), ("w", VIEW_OF_VIEW)):
            text = text.replace("from v", "from an.v").replace("join c", "join an.c")
            with contextlib.suppress(duckdb.Error):
                base.execute(f"create or replace view an.{name} as {text}")
        try:
            found = base.sql(
                question.replace("left semi join", "semi join").replace("left anti", "anti")
            )
            return found.columns, sorted(map(repr, found.fetchall()))
        except duckdb.Error as error:
            return type(error)


@pytest.fixture
def schema(tmp_path) -> Schema:
    return Schema(tmp_path, ENRICHMENTS[:7])


QUESTIONS = [
    "select e0_a, e1_b, e1_a from an.c where month = 1",
    "select month, day, e3_a from an.c",
    "select * from an.c where month = 2",
    "select count(*) from an.c where month = 1",
    "select sum(cells_a) from an.c",
    "select e0_a from an.c where e1_a = 1",
    "select e0_a from an.c where e1_a is null and day < 2",
    "select x.e2_a, y.e3_b from an.c x join an.c y on x.day = y.day and x.month = 1 "
    "and y.month = 2",
    "select c.e2_a, t.t_a from an.c left join an.t on c.month = t.month and t.month = 1",
    "select c.e2_a, t.t_a from an.c left join an.t on c.month = t.month where t.month = 1",
    "select t_a from an.t where month = 1 and t_b > 1",
    "select t_a from an.t where month = 1 union all select u_a from an.u where month = 2",
    "select t_a from an.t where month in (select month from an.u where u_a = 1)",
    "select * from an.t left semi join an.u on t.month = u.month and u.u_a = 3",
    "select * from an.t left anti join an.u on t.month = u.month and u.u_a = 3 and t.t_a = 1",
    "select x from an.v where month = 1",
    "select * from an.w where month = 1",
    "select x, e4_a from an.w where month = 3 and e4_a = 1",
    "with q as (select month, max(e5_a) as m from an.c group by month) "
    "select m from q where month = 1",
    "select month, count(*) from (select * from an.t where month > 1 limit 100) group by month",
    "select t_a, u_a from an.t, an.u where t.month = u.month and t.day = u.day and t.month = 1",
    "select day, row_number() over (partition by month order by day, t_a, t_b) as r from an.t "
    "where month = 2",
    "select distinct month from an.c where day = 1",
    "select 1 from an.t where exists (select 1 from an.u where u.month = t.month and u_b = 1)",
    "select max(t_a) from an.t having max(t_a) > 0",
    "select coalesce(t_a, e6_a) from an.t full join an.c using (month, day) where month = 1",
]


def changes(chance: Random, schema: Schema) -> tuple[str, Callable[[], object]]:
    """One random change, and what it is."""
    face, month = schema.face, chance.choice(MONTHS)
    name, table = chance.choice(["cells", *ENRICHMENTS[:7]]), chance.choice(["t", "u"])
    some = rows(chance, name, [month])
    cube = face.cube("c")

    def again(cells: pa.Table) -> pa.Table:
        return cells.slice(0, chance.randint(1, 3))

    def rebuilt() -> None:
        names = [n for n in cube.datasets if n != "cells"]
        known = {n: face.cube("c").query().to_arrow() for n in names[:1]}
        for n, found in known.items():
            columns = [c for c in ("month", "day", f"{n}_a", f"{n}_b") if c in found.column_names]
            cube.extend({n: found.select(columns)}, overwrite=True)

    def other_columns() -> None:
        n = chance.choice(ENRICHMENTS[:7])
        if n in cube.datasets:
            cube.alter(n, rename={f"{n}_b": f"{n}_c"}) if chance.random() < 0.5 else None

    found = {
        "append": lambda: cube.append({name: again(some)}),
        "update": lambda: cube.update({name: some}, f"month = {month}"),
        "delete": lambda: cube.delete(f"month = {month} and day = {chance.choice(DAYS)}", [name]),
        "partition": lambda: cube.remove_partitions(f"month = {month}", [name]),
        "compact": cube.compact,
        "restore": lambda: cube.restore(chance.randint(1, cube.version)),
        "rebuilt": rebuilt,
        "index": lambda: cube.index("day"),
        "drop": lambda: cube.drop(chance.choice(ENRICHMENTS[:7])),
        "rows": lambda: face.write_table(table, rows(chance, table, [month])),
        "merge": lambda: face.write_table(
            table, again(rows(chance, table, [month])), "merge", key=["month", "day"]
        ),
        "deleted": lambda: face.table(table).delete(f"month = {month} and day = 1"),
        "back": lambda: face.table(table).restore(1),
        "dropped": lambda: (
            face.drop(table),
            face.write_table(table, rows(chance, table), partition_by=["month"]),
        ),
        "columns": lambda: face.table(table).alter(add={f"{table}_c": "bigint"}),
        "renamed": lambda: face.table(table).alter(rename={f"{table}_b": f"{table}_c"}),
    }
    kind = chance.choice(list(found))
    return f"{kind} {name} {table} {month}", found[kind]


@pytest.mark.parametrize("seed", range(1 if EVERY_COMMIT else 3 * TIMES))
def test_what_is_said_to_be_unchanged_has_the_same_rows(schema, seed):
    """Random changes of everything; another program answers the questions."""
    chance = Random(seed)
    kept = 0
    for question in QUESTIONS:
        schema.ask(question)
    for _ in range(12):
        what = "nothing"
        for _ in range(chance.randint(1, 2)):
            what, change = changes(chance, schema)
            try:
                change()
            except KtkError:
                continue
        for question in chance.sample(QUESTIONS, 8):
            why = schema.why(question)
            _, before = schema.seen[question]
            if not why:
                kept += 1
                assert schema.answer(question) == before, (question, what)
            else:
                schema.ask(question)
    assert kept > 10


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> Schema:
    return Schema(tmp_path_factory.mktemp("wide"))


def some(name: str, month: int, day: int = 0) -> pa.Table:
    return rows(Random(month), name, [month]).slice(day, 2)


# What is asked, what changes, and the reason to ask again.
MATTERS = [
    ("select e0_a, e1_a, e1_b from an.c", {f"e{n}": 1 for n in range(2, 20)}, ""),
    ("select e0_a, e1_a from an.c", {"e1": 1}, "an.c changed, version .*(e1: 1 file of month=1)"),
    ("select e0_a, e1_a from an.c where month = 1", {"e0": 2, "e1": 3, "cells": 2}, ""),
    ("select e0_a, e1_a from an.c where month = 1", {"cells": 1}, "cells: 1 file of month=1"),
    ("select e0_a from an.c where month = 1 and e1_a = 2", {"e1": 2}, ""),
    ("select * from an.c where month = 1", {"e19": 2}, ""),
    ("select * from an.c where month = 1", {"e19": 1}, "an.c changed .*e19: "),
    ("select x from an.v where month = 3", {"t": 2}, ""),
    ("select x from an.v where month = 3", {"t": 3}, "an.t changed, version .* of month=3"),
    ("select e0_a from an.c join an.t on c.day = t.day where t.month = 2", {"t": 1, "e3": 2}, ""),
    ("select made_up(e0_a) over () from an.c", {"e9": 1}, "calls `made_up`"),
    ("select e0_a from an.c pivot (sum(e0_a) for day in (1))", {"e9": 1}, "an.c changed"),
    ("select e0_a from an.c, an.gone", {}, "reads an.gone, which no store holds (line 1)"),
    ("select a from parquet.`/gone/x`", {}, "reads parquet./gone/x, which no store holds"),
]


@pytest.mark.parametrize(("question", "changed", "why"), MATTERS)
def test_what_matters_to_a_question(wide, question, changed, why):
    wide.ask(question)
    assert wide.why(question) == "" or not changed or "calls" in why
    for name, month in changed.items():
        if name in ("t", "u"):
            wide.face.write_table(name, some(name, month))
        else:
            wide.face.cube("c").append({name: some(name, month, 1)})
    said = wide.why(question)
    first, *others = why.split(" .*")
    assert first in said
    assert all(other in said for other in others)
    assert bool(said) == bool(why)


def test_same_rows_once_more_do_not_matter(wide):
    """Whatever wrote them: their bytes are equal."""
    question = "select * from an.c where month = 2"
    wide.face.cube("c").compact()
    wide.ask(question)
    cube = wide.face.cube("c")
    found = cube.query().to_arrow().select(["month", "day", "e7_a", "e7_b"])
    version = cube.extend({"e7": found}, overwrite=True).version
    assert version > cube.version
    again = wide.why(question)
    cells = wide.face.cube("c").query().to_arrow()
    assert not again or "e7" in again
    wide.ask(question)
    wide.face.cube("c").extend({"e7": cells.select(found.column_names)}, overwrite=True)
    assert wide.why(question) == ""


def test_the_order_of_files_that_replace_cells_matters(wide):
    """The same files, in another order: the last one of a cell wins."""
    ones, twos = (
        pa.table({"month": [1], "day": [0], "e8_a": [n], "e8_b": [n]}) for n in (100, 200)
    )
    question, base = "select e8_a from an.c where month = 1", wide.face.cube("c")
    base.append({"e8": ones}).append({"e8": twos})
    wide.ask(question)
    wide.face.cube("c").restore(base.version).append({"e8": ones}).append({"e8": twos})
    assert wide.why(question) == ""
    wide.face.cube("c").restore(base.version).append({"e8": twos}).append({"e8": ones})
    assert "of month=1" in wide.why(question)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda note: {"work": {**note.work, "SQL": "x"}}, "its SQL changed"),
        (lambda note: {"work": {**note.work, "view an.c": "x"}}, "its view an.c changed"),
        (lambda note: {"work": {**note.work, "zone": "UTC"}}, "its zone changed"),
        (lambda note: {"unknown": {"calls `f`": "line 7"}}, "calls `f` (line 7)"),
        (lambda note: {"read": note.read[1:]}, "has no seed dataset"),
        (
            lambda note: {"read": tuple(dataclasses.replace(i, commit="x") for i in note.read)},
            "has another history",
        ),
        (
            lambda note: {"read": tuple(dataclasses.replace(i, document="x") for i in note.read)},
            "was not read before",
        ),
        (
            lambda note: {"read": tuple(dataclasses.replace(i, store="other") for i in note.read)},
            "was not read before",
        ),
        (
            lambda note: {"read": tuple(dataclasses.replace(i, uuid="t") for i in note.read)},
            "was not read before",
        ),
    ],
)
def test_each_part_of_a_note_counts(wide, change, why):
    question = "select e0_a from an.c"
    wide.ask(question)
    note, answer = wide.seen[question]
    assert wide.why(question) == ""
    wide.seen[question] = dataclasses.replace(note, **change(note)), answer
    assert why in wide.why(question)


def test_a_column_of_nulls_gets_a_type(wide):
    """The same files, in which the column is another one from now on."""
    table = pa.table({"month": [1], "n": pa.nulls(1)})
    wide.face.write_table("z", table, partition_by=["month"])
    wide.ask("select n from an.z where month = 1")
    wide.face.write_table("z", pa.table({"month": [2], "n": [5]}))
    assert "the type of n" in wide.why("select n from an.z where month = 1")


def test_a_new_column_may_be_meant(wide):
    """A name that was another relation's, or a field's, so far."""
    wide.face.write_table("y", pa.table({"month": [1], "y_a": [1]}))
    inner = "select t_a from an.t where exists (select 1 from an.y where t_b = 1)"
    for question in (inner, "select month from an.y"):
        wide.ask(question)
    wide.face.table("y").alter(add={"t_b": "bigint"})
    assert "an.y changed (column t_b)" in wide.why(inner)


def test_versions_that_a_statement_names(wide):
    """A number stays; a tag may come to mean another version, also without a newer one."""
    table = wide.face.table("t")
    number = table.version
    named = f"select t_a from an.t version as of {number}"
    tagged = "select t_a from an.t version as of 'good' where month = 1"
    both = f"select 1 from an.t where month = 3 union all select 1 from an.t version as of {number}"
    table.tag("good")
    for question in (named, tagged, both):
        wide.ask(question)
        assert wide.why(question) == ""
    wide.face.write_table("t", some("t", 1))
    assert [wide.why(question) for question in (named, tagged, both)] == ["", "", ""]
    table.untag("good")
    assert "good" in wide.why(tagged)
    wide.face.table("t").tag("good")
    assert "t changed, version" in wide.why(tagged)
    assert [wide.why(question) for question in (named, both)] == ["", ""]
    wide.ask(tagged)
    table.untag("good")
    table.at(version=number).tag("good")
    assert "t changed, version" in wide.why(tagged)
    wide.face.write_table("t", some("t", 3))
    assert "an.t changed" in wide.why(both)


def test_files_of_this_machine(wide, tmp_path):
    """By all that changes with their content, and with the files that there are."""
    file, other = tmp_path / "x" / "a=1" / "f.csv", tmp_path / "x" / "g.csv"
    file.parent.mkdir(parents=True)
    file.write_text("a\n1\n")
    address = quote_identifier(str(FileAddress(str(tmp_path / "x"), "csv")))
    question = f"select * from {address}.x.y join an.t"

    def is_unchanged() -> bool:
        why = wide.why(question)
        assert not why or why.startswith("its files ")
        wide.ask(question)
        return not why

    wide.ask(question)
    assert is_unchanged()
    wide.face.write_table("t", some("t", 2))
    assert "an.t changed" in wide.why(question)
    wide.ask(question)
    before = os.stat(file)
    file.write_text("a\n2\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not is_unchanged()
    other.write_text("a\n1\n")
    assert not is_unchanged()
    file.unlink()
    assert not is_unchanged()
    assert is_unchanged()


@pytest.mark.parametrize(
    "address",
    [
        FileAddress("s3://bucket/x", "csv"),
        FileAddress("relative/x", "csv"),
        FileAddress("/x", "csv", (("avroSchemaUrl", "http://x/y"),)),
    ],
)
def test_files_elsewhere_are_unknown(wide, address):
    question = f"select * from {quote_identifier(str(address))}.x.y"
    wide.ask(question)
    assert "reads x.y, whose files are not on this machine (line 1)" in wide.why(question)


def test_names_in_double_quotes(wide):
    """In sessions where these are names, a statement is read so."""
    dialect = dataclasses.replace(DEFAULT, quotes_names=True)
    found = trace('select "t_a" from "an"."t" where "now" = 1', wide.relations(), dialect)
    assert [str(place) for place in found.places.values()] == ["an.t"]
    assert not trace('select "t_a" from "an"."t"', wide.relations(), DEFAULT).places
