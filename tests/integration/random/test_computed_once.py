"""Datasets that are computed only where their notes do not prove them: as if all were computed.

Three stores take the same random steps. S leaves out what it may, N computes everything, and F is
built from what the sources hold.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import KtkError
from ktk_engine.log.computed import (  # deep: what a run notes
    Computed,
    read_computed,
    versions_read,
    write_computed,
)
from ktk_engine.plan.statement.judge import why_computed_again
from ktk_engine.plan.statement.trace import Trace, trace
from ktk_engine.sql.dialect import DEFAULT  # deep: what texts mean
from tests.support.changes import WriteRequest, build
from tests.support.committed import State, cube_scope, resolve, scope_of
from tests.support.documents import ViewDocument, add_view
from tests.support.queries import KnownStores, NamedRelations
from tests.support.random_cubes import TIMES
from tests.support.stores import LocalStore

MONTHS, DAYS = (1, 2, 3), range(5)
PARTS = ("SQL", "view an.v0", "setting", "empty")  # of the work


@dataclass(frozen=True)
class Node:
    """A dataset or view that a run computes."""

    name: str
    texts: tuple[str, ...]  # one of them at a time
    kind: str = "table"  # `enrichment`, `append` or `merge` instead, or `view`
    first: str = ""  # what an incremental one computes before it has rows


NODES = [
    Node("m0", ("select month, day, a + b + $setting as v from an.s0 where month < 3",
                "select month, day, a - b as v from an.s0 where month <> 2")),
    Node("e", ("select month, day, a as e_a from an.s1", "select month, day, b as e_a from an.s1"),
         "enrichment"),
    Node("m1", ("select m0.month, m0.v, c.e_a from an.m0 join an.c on m0.month = c.month and "
                "m0.day = c.day where c.month = 1",)),
    Node("v0", ("select month, max(v) as top from an.m0 group by month",
                "select month, min(v) as top from an.m0 group by month"), "view"),
    Node("m2", ("select * from an.v0 where top > 2",)),
    Node("m3", ("select s_a from an.c where month = 2 and day < 3",
                "select count(*) as s_a from an.c where month = 2")),
    Node("m4", ("select month, 'today' as d from an.s0 where day = 1",)),
    Node("i0", ("select month, day, b from an.s0 where day > (select max(day) from an.i0)",),
         "append", "select month, day, b from an.s0"),
    Node("i1", ("select month, day, a from an.s1",), "merge"),
    Node("i2", ("select month, day, b from an.s1 where day = 1",), "append"),
    Node("m5", ("select sum(b) as b from an.i0 where month = 3",)),
]  # fmt: skip


def cells(chance: Random, names: tuple[str, ...], months=MONTHS) -> pa.Table:
    found = [(month, day) for month in months for day in DAYS if chance.random() < 0.7]
    columns = {
        "month": pa.array([month for month, _ in found], pa.int64()),
        "day": pa.array([day for _, day in found], pa.int64()),
    }
    for name in names:
        columns[name] = pa.array([chance.randint(0, 4) for _ in found], pa.int64())
    return pa.table(columns)


@dataclass
class Runs:
    """One of the stores."""

    root: Path
    skips: bool
    left_out: str = ""  # a part of the note that is not compared
    only: tuple[str, ...] = tuple(node.name for node in NODES)
    skipped: int = 0
    ran: int = 0
    clock: int = 0
    setting: int = 0
    chosen: dict[str, int] = field(default_factory=dict)  # texts of nodes

    def __post_init__(self) -> None:
        self.store = LocalStore(self.root / "an")
        self.face = Store.of(self.store)
        chance = Random(0)
        for name in ("s0", "s1"):
            self.face.write_table(name, cells(chance, ("a", "b")), partition_by=["month"])
        seed = pa.table(
            {
                "month": [m for m in MONTHS for _ in DAYS],
                "day": [d for _ in MONTHS for d in DAYS],
                "s_a": [m + d for m in MONTHS for d in DAYS],
            }
        )
        self.face.build("c", seed, dimension_columns=["day"], partition_by=["month"])
        add_view(self.store, ViewDocument("c", "cube", cube="c"))

    def rows(self, name: str) -> list[str] | None:
        """The rows of a relation, sorted; None if there is none."""
        try:
            found = self.face.relation(name).query().to_arrow()
        except KtkError:
            return None
        return sorted(str(sorted(row.items())) for row in found.to_pylist())

    def run(self, *, empty: bool = False, killed: str = "", only: str = "") -> None:
        """Compute all nodes, or one; `killed` ends the run before the note of that node."""
        for node in NODES:
            if node.name not in self.only or only not in ("", node.name):
                continue
            if node.kind == "view":
                text = self._text(node)
                if self.rows("m0") is not None:
                    add_view(self.store, ViewDocument(node.name, "view", text))
                continue
            done = self._begun(node, empty)
            made = None if done is None else self._computed(node, done)
            if node.name == killed:
                return
            if made is not None:
                note, uuid = made
                write_computed(self.store, self._scope(node), uuid, note)

    def _text(self, node: Node) -> str:
        text = node.texts[self.chosen.get(node.name, 0) % len(node.texts)]
        return text

    def _scope(self, node: Node):
        return cube_scope("c") if node.kind == "enrichment" else scope_of(node.name)

    def _begun(self, node: Node, empty: bool) -> tuple[Trace, Mapping[str, str], pa.Table] | None:
        """What a node reads, and its rows; None if they are there."""
        uuid = "c++e" if node.kind == "enrichment" else node.name
        own = resolve(self.store, self._scope(node))
        exists = uuid in own.datasets
        text = node.first if node.first and not exists else self._text(node)
        known = NamedRelations(KnownStores({"an": self.store}.get))
        found = trace(text, known, DEFAULT)
        work = {**found.work(), "setting": str(self.setting), "empty": str(empty)}
        if self.skips and exists:
            note = read_computed(self.store, self._scope(node), uuid)
            if note is not None and self.left_out:
                note = self._without(note, own, uuid, found, work)
            continues = node.kind in ("append", "merge")
            why = why_computed_again(note, own, uuid, work, found, continues=continues)
            if not why:
                self.skipped += 1
                return None
        self.ran += 1
        return found, work, self._answer(text, empty)

    def _without(self, note: Computed, own: State, uuid: str, found: Trace, work) -> Computed:
        """The note as if one of its parts were as it is now."""
        if self.left_out in PARTS:
            same = {name: text for name, text in work.items() if name == self.left_out}
            kept = {**note.work, **same}
            return replace(note, work=kept)
        if self.left_out == "read":
            return replace(note, read=versions_read(self.store, [found.reads()]))
        if self.left_out == "commit":
            entry = own.datasets[uuid].entry
            return replace(note, version=entry.version, commit=entry.commit)
        if self.left_out == "unknown":
            found.unknown.clear()
            return replace(note, unknown={})
        return replace(note, unchanged=True)

    def _answer(self, text: str, empty: bool) -> pa.Table:
        """The rows of a query by another program."""
        base = duckdb.connect()
        base.execute("create schema an")
        for name in ("s0", "s1", "c", "m0", "i0"):
            if f"an.{name}" not in text.replace("an.v0", "an.v0 an.m0"):
                continue
            try:
                base.register("given", self.face.relation(name).query().to_arrow())
            except KtkError:
                continue
            base.execute(f"create table an.{name} as select * from given")
        if "an.v0" in text:
            view = NamedRelations(KnownStores({"an": self.store}.get)).view("an", "v0").sql
            base.execute(f"create view an.v0 as {view}")
        text = text.replace("$setting", str(self.setting)).replace("'today'", str(self.clock))
        found = base.sql(f"select * from ({text}){' limit 0' if empty else ''}").to_arrow_table()
        return found.cast(pa.schema([f.with_type(pa.int64()) for f in found.schema]))

    def _computed(self, node: Node, done) -> tuple[Computed, str]:
        """Store the rows; gives the note of it."""
        found, work, table = done
        uuid, unchanged = node.name, False
        if node.kind == "enrichment":
            uuid = "c++e"
            build(self.store, table, WriteRequest("e", "enrichment", "c", ("day",), ("month",)))
        elif node.kind == "merge" and self.rows(node.name) is not None:
            before = self.rows(node.name)
            if table.num_rows:
                self.face.write_table(node.name, table, "merge", key=["month", "day"])
            unchanged = self.rows(node.name) == before
        elif node.kind == "append" and self.rows(node.name) is not None:
            unchanged = not table.num_rows
            if table.num_rows:
                self.face.write_table(node.name, table)
        else:
            layout = ("month",) if "month" in table.column_names and table.num_rows else ()
            build(self.store, table, WriteRequest(node.name, partition_by=layout))
        entry = resolve(self.store, self._scope(node)).datasets[uuid].entry
        return (
            Computed(
                entry.version,
                entry.commit,
                datetime.now(UTC),
                work,
                versions_read(self.store, [found.reads()]),
                {item.what: str(item.line) for item in found.unknown},
                unchanged,
            ),
            uuid,
        )

    def copied(self, root: Path) -> Runs:
        """Another store with the same sources, where everything is computed."""
        other = replace(self, root=root, skips=False)
        for name in ("s0", "s1"):
            other.face.write_table(name, self.face.table(name).query().to_arrow(), "overwrite")
        other.run()
        return other


@dataclass(frozen=True)
class Step:
    """A change of a store, the same in each."""

    kind: str
    name: str  # of a node
    table: str  # a source
    month: int
    number: int
    rows: pa.Table

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.table} {self.month} {self.number}"

    def take(self, run: Runs) -> None:
        """Take it, if it can be taken now."""
        with contextlib.suppress(KtkError, duckdb.Error):
            KINDS[self.kind](run, self)


KINDS: Mapping[str, Callable[[Runs, Step], object]] = {
    "nothing": lambda run, step: None,
    "rows": lambda run, step: run.face.write_table(
        step.table, step.rows, "merge", key=["month", "day"]
    ),
    "delete": lambda run, step: run.face.table(step.table).delete(f"month = {step.month}"),
    "restore": lambda run, step: run.face.table(step.table).restore(step.number),
    "compact": lambda run, step: run.face.table(step.table).compact(),
    "cells": lambda run, step: run.face.cube("c").delete(
        f"month = {step.month} and day = {step.number}"
    ),
    "text": lambda run, step: run.chosen.update({step.name: step.number}),
    "setting": lambda run, step: setattr(run, "setting", step.number),
    "clock": lambda run, step: setattr(run, "clock", run.clock + 1),
    "by hand": lambda run, step: run.face.table(step.name).delete("1 = 1"),
    "compacted": lambda run, step: run.face.table(step.name).compact(),
    "restored": lambda run, step: run.face.table(step.name).restore(1),
    "renamed": lambda run, step: run.face.table(step.name).rename("x").rename(step.name),
    "dropped": lambda run, step: run.face.drop(step.name),
    "empty": lambda run, step: run.run(empty=True),
    "killed": lambda run, step: run.run(killed=step.name),
    "part": lambda run, step: run.run(only=step.name),
}


def random_step(chance: Random) -> Step:
    """Choose a step."""
    month = chance.choice(MONTHS)
    return Step(
        chance.choice(list(KINDS)),
        chance.choice([node.name for node in NODES]),
        chance.choice(["s0", "s1"]),
        month,
        chance.randrange(1, 4),
        cells(chance, ("a", "b"), [month]),
    )


def others(one: Runs, two: Runs) -> list[str]:
    """The nodes that have other rows in another store."""
    return [node.name for node in NODES if one.rows(node.name) != two.rows(node.name)]


@pytest.mark.parametrize("seed", range(2 * TIMES))
def test_what_is_left_out_has_the_rows_that_it_would_get(tmp_path, seed):
    chance, done = Random(seed), list[Step]()
    one, two = Runs(tmp_path / "S", skips=True), Runs(tmp_path / "N", skips=False)
    for _ in range(8):
        for step in [random_step(chance) for _ in range(chance.randrange(3))]:
            done.append(step)
            for run in (one, two):
                step.take(run)
        for run in (one, two):
            run.run()
        assert others(one, two) == [], list(map(str, done))
    assert one.skipped > one.ran / 3
    fresh = one.copied(tmp_path / "F")
    stateless = [node.name for node in NODES if node.name in ("m0", "m2", "m4", "v0")]
    assert set(others(one, fresh)).isdisjoint(stateless), list(map(str, done))


@pytest.mark.parametrize(
    ("part", "kind", "names"),
    [
        ("SQL", "text", ("m0",)),
        ("view an.v0", "text", ("v0", "m0", "m2")),
        ("setting", "setting", ("m0",)),
        ("empty", "empty", ("m0",)),
        ("read", "rows", ("m0",)),
        ("commit", "by hand", ("m0",)),
        ("unknown", "clock", ("m4",)),
        ("unchanged", "nothing", ("i2",)),
    ],
)
def test_each_part_of_the_note_is_needed(tmp_path, part, kind, names):
    """Without it, something stays that should not."""
    found = []
    for left_out in ("", part):
        root = tmp_path / f"without {left_out}"
        one, two = (Runs(root / name, name == "S", "", names) for name in "SN")
        step = Step(kind, names[0], "s0", 1, 1, cells(Random(5), ("a", "b"), [1]))
        for run in (one, two):
            run.run()
            step.take(run)
        one.left_out = left_out
        for run in (one, two):
            run.run()
        found.append(others(one, two))
    assert found[0] == []
    assert found[1] != []
