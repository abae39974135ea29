"""What changed between two versions, after random histories: exactly what full rows of both say."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import KtkError
from tests.support.dataset_builder import write_plain
from tests.support.documents import CubeSpecification
from tests.support.random_cubes import EVERY_COMMIT, TIMES
from tests.support.stores import LocalStore

PAIRS = 50 if EVERY_COMMIT else 150 * TIMES  # of cubes, and of tables
PARTITIONS = ("a/b", "é=%", "x")
TYPES = {
    "p": pa.string(), "d": pa.int64(), "t": pa.string(), "v": pa.float64(), "x": pa.float64(),
    "k": pa.int32(), "m": pa.map_(pa.string(), pa.int64()), "l": pa.list_(pa.float64()),
    "s": pa.struct({"f": pa.float64(), "i": pa.int64()}), "w": pa.decimal128(10, 2),
    "r": pa.string(), "q": pa.bool_(), "v2": pa.float64(),
}  # fmt: skip
FLOATS = [0.0, -0.0, math.nan, 1.5, None]
VALUES = {
    "p": PARTITIONS, "d": range(6), "t": ("", "ü", "z"), "v": FLOATS,
    "x": [0.0, -0.0, math.nan, 2.5],
    "k": [None, 0, 1, 2, 3], "m": [None, [], [("a", 1), ("b", None)], [("b", None), ("a", 1)]],
    "l": [None, [], [0.0], [-0.0, math.nan], [None]], "s": [None, {"f": -0.0, "i": 1},
    {"f": 0.0, "i": 1}, {"f": math.nan, "i": None}], "w": [None, Decimal("1.25"), Decimal("-0.10")],
    "r": [None, "", "ü"], "q": [None, True, False], "v2": FLOATS,
}  # fmt: skip
CELLS = {"cells": ("p", "d", "t"), "more": ("p", "d"), "flat": ("t",), "other": ("p", "d", "t")}
PAYLOAD = {"cells": ("v", "s"), "more": ("m", "w"), "flat": ("l",), "other": ("q",)}


def plain(value, t):
    """A value as text, the same if it is stored alike."""
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, list):
        items = [repr(plain(item, None)) for item in value]
        return sorted(items) if t is not None and pa.types.is_map(t) else items
    if isinstance(value, tuple):
        return tuple(plain(item, None) for item in value)
    if isinstance(value, dict):
        return {name: plain(item, None) for name, item in value.items()}
    return repr(value)


def texts(table, names):
    """Rows as texts of some columns; a column that is missing is null."""
    columns = [
        [repr(plain(value, table.schema.field(name).type)) for value in table[name].to_pylist()]
        if name in table.column_names
        else [repr(plain(None, None))] * table.num_rows
        for name in names
    ]
    return list(zip(*columns, strict=True)) if columns else []


def keys_of(table, key):
    """Keys as texts, with -0.0 as 0.0; None where one is null."""
    columns = [table[name].to_pylist() for name in key]
    return [
        None if None in row else tuple(repr(v + 0.0) if isinstance(v, float) else v for v in row)
        for row in zip(*columns, strict=True)
    ]


def model(before, after, key):
    """The changes that full rows of two versions say, each with how often it comes."""
    names = [*key, *(n for n in after.column_names if n not in key)]
    old, new = texts(before, names), texts(after, names)
    if not key:
        gone, came = Counter(old) - Counter(new), Counter(new) - Counter(old)
        updates = Counter()
    else:
        olds, news = keys_of(before, key), keys_of(after, key)
        counts = Counter(olds), Counter(news)
        single = {k for k in counts[0] if k is not None and counts[0][k] == counts[1][k] == 1}
        one = {k: row for k, row in zip(olds, old, strict=True) if k in single}
        other = {k: row for k, row in zip(news, new, strict=True) if k in single}
        updates = Counter((one[k], other[k]) for k in single if one[k] != other[k])
        left = Counter(row for k, row in zip(olds, old, strict=True) if k not in single)
        right = Counter(row for k, row in zip(news, new, strict=True) if k not in single)
        gone, came = left - right, right - left
    return gone, came, updates


def found(changes, key):
    """The changes as the library gives them, in the form of `model`."""
    names = changes.column_names[1:]
    assert names[: len(key)] == list(key)
    rows, kinds = texts(changes, names), changes["_change_type"].to_pylist()
    by = {kind: Counter(r for r, k in zip(rows, kinds, strict=True) if k == kind)
          for kind in ("delete", "insert")}  # fmt: skip
    updates = Counter(
        (rows[at], rows[at + 1]) for at, kind in enumerate(kinds) if kind == "update_preimage"
    )
    for one, other in pairwise([*kinds, ""]):
        assert (one == "update_preimage") == (other == "update_postimage")
    return by["delete"], by["insert"], updates


def rows(chance, names, unique=(), most=8):
    """Random rows, each with its own values of some columns."""
    cells = {}
    for _ in range(chance.randint(1, most)):
        row = {name: chance.choice(VALUES[name]) for name in names}
        cells[tuple(row[n] for n in unique) if unique else len(cells)] = row
    return pa.Table.from_pylist(list(cells.values()), pa.schema([(n, TYPES[n]) for n in names]))


def dataset(chance, name):
    return rows(chance, (*CELLS[name], *PAYLOAD[name]), CELLS[name])


WHERE = ["p = 'a/b'", "d > 2", "t = 'ü' and p = 'x'", "d in (0, 3)", "p <> 'x'"]


class History:
    """A cube or table that is changed in every way."""

    def version(self, number: int):
        """A version, with all its rows."""
        known = self.__dict__.setdefault("versions", {})
        if number not in known:
            opened = self.cube.at(number)
            known[number] = opened, opened.query().to_arrow()
        return known[number]


class CubeHistory(History):
    def __init__(self, store: Store, chance: Random, foreign: bool) -> None:
        self.store, self.chance = store, chance
        names = ["cells", *chance.sample(["more", "flat"], chance.randint(0, 2))]
        tables = {name: dataset(chance, name) for name in names}
        if foreign:
            spec = CubeSpecification("c", ("d", "t"), ("p",), "cells")
            for name, table in tables.items():
                keys = ("p",) if "p" in table.column_names else ()
                write_plain(store._store, f"c++{name}", table, keys, spec.metadata(name))
            self.cube.append({"cells": dataset(chance, "cells")})
            return
        store.build("c", tables, dimension_columns=["d", "t"], partition_by=["p"], seed="cells")

    @property
    def cube(self):
        return self.store.cube("c")

    def step(self) -> None:
        chance, cube = self.chance, self.cube
        there = [name for name in CELLS if name in cube.datasets]
        name = chance.choice(there)
        others = [item for item in there if item != "cells"]
        action = chance.randrange(11)
        if action <= 1:
            cube.append({name: dataset(chance, name)})
        elif action == 2:
            where = chance.choice(["p = 'a/b'", "p = 'x'", "p <> 'x'"])
            cube.update({"cells": dataset(chance, "cells")}, where)
        elif action == 3:
            cube.delete(chance.choice(WHERE))
        elif action == 4 and others:
            cube.drop(chance.choice(others))
        elif action == 5:
            new = chance.choice(["more", "flat", "other"])
            layout = {} if chance.random() < 0.6 else {"partition_on": {new: ["p"]}}
            if new == "flat":
                layout = {}
            cube.extend({new: dataset(chance, new)}, overwrite=True, **layout)
        elif action == 6:
            cube.compact()
        elif action == 7 and cube.version > 1:
            cube.restore(chance.randint(1, cube.version - 1))
        elif action == 8 and others:
            old = chance.choice(PAYLOAD[chance.choice(others)])
            owner = next(item for item in others if old in PAYLOAD[item])
            if old in cube.schema.names:
                cube.alter(owner, rename={old: f"{old}2"})
        elif action == 9 and others:
            cube.alter(chance.choice(others), add={f"n{cube.version}": "string"})
        elif action == 10:
            with cube.transaction() as changes:
                changes.append({"cells": dataset(chance, "cells")})
                changes.delete(chance.choice(WHERE))

    def check(self, old: int, new: int) -> None:
        before, one = self.version(old)
        after, other = self.version(new)
        key = ["p", "d", "t"]
        assert found(after.changes(before).to_arrow(), key) == model(one, other, key)
        if self.chance.random() < 0.3:
            return
        both = [f.name for f in after.schema if f in list(before.schema) and f.name not in key]
        name, said = self.chance.choice(both), self.chance.choice(both)
        conditions = [self.chance.choice(WHERE), f"{said} is null", f"{said} is not null"]
        where, columns = self.chance.choice(conditions), [*key, name]
        narrowed = after.changes(before, columns=[name], where=where).to_arrow()
        one, other = (item.query(columns, where).to_arrow() for item in (before, after))
        assert found(narrowed, key) == model(one, other, key)


class TableHistory(History):
    names = ("p", "k", "x", "r", "v", "m", "s")

    def __init__(self, store: Store, chance: Random, foreign: bool) -> None:
        self.store, self.chance = store, chance
        self.keys = chance.choice([None, ["k"], ["k", "x"], ["p", "k"], ["r"]])
        keys = chance.choice([["p"], []])
        if foreign:
            write_plain(store._store, "t", rows(chance, self.names), tuple(keys))
            store.write_table("t", rows(chance, self.names))
            return
        store.write_table("t", rows(chance, self.names), partition_by=keys)

    @property
    def cube(self):
        return self.store.table("t")

    def step(self) -> None:
        chance, table = self.chance, self.cube
        action = chance.randrange(10)
        names = table.schema.names
        if action <= 1:
            self.store.write_table("t", rows(chance, names))
        elif action == 2:
            self.store.write_table("t", rows(chance, names), "overwrite")
        elif action == 3:
            self.store.write_table("t", rows(chance, names, ["k"]), "merge", key=["k"])
        elif action == 4:
            table.delete(chance.choice(["p = 'a/b'", "k > 1", "r is null", "p <> 'x'"]))
        elif action == 5:
            table.compact()
        elif action == 6 and table.version > 1:
            table.restore(chance.randint(1, table.version - 1))
        elif action == 7:
            table.repartition(*chance.choice([(), ("p",)]))
        elif action == 8 and "v" in table.schema.names:
            table.alter(rename={"v": "v2"})
        elif action == 9:
            table.alter(drop=["s"]) if "s" in names else table.alter(add={"s": TYPES["s"]})

    def check(self, old: int, new: int) -> None:
        before, one = self.version(old)
        after, other = self.version(new)
        for key in (self.keys, None):
            changes = after.changes(before, key=key).to_arrow()
            assert found(changes, key or []) == model(one, other, key or [])


def walk(history, seed: int, pairs: int) -> int:
    """Check pairs of versions of one history; gives how many."""
    chance = Random(seed)
    folder = tempfile.mkdtemp()
    try:
        store = Store(Path(folder) / "s")
        made = history(store, chance, foreign=seed % 5 == 0)
        for _ in range(10):
            with suppress(KtkError):  # a step may be refused, for instance after others
                made.step()
        newest = made.cube.version
        chosen = [(a, b) for a in range(1, newest + 1) for b in range(1, newest + 1)]
        for old, new in chance.sample(chosen, min(pairs, len(chosen))):
            try:
                made.check(old, new)
            except Exception as error:
                raise AssertionError(f"seed {seed}, {old} to {new}") from error
        return min(pairs, len(chosen))
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("history", [CubeHistory, TableHistory])
def test_changes_are_what_full_rows_say(history, monkeypatch):
    done, seed = 0, 0
    while done < PAIRS:
        seed += 1
        if seed % 2:  # else all rows are compared at once
            rows_ = "ktk_engine.describe.changed_rows"  # deep: cuts few rows
            files = "ktk_engine.describe.changed_files"  # deep: as if there were many
            monkeypatch.setattr(f"{rows_}._PIECE_BYTES", 1_000)
            monkeypatch.setattr(f"{files}._MOST_BOXES", 2)
            monkeypatch.setattr(f"{files}._FEW", 0)
        else:
            monkeypatch.undo()
        done += walk(history, seed, 40)


def test_files_of_other_programs_have_no_digest():
    """What the histories above begin with, in every fifth of them."""
    folder = tempfile.mkdtemp()
    store = LocalStore(Path(folder) / "s")
    write_plain(store, "t", pa.table({"a": [1]}))
    assert Store.of(store).table("t")._loaded.snapshot.files["digest"].null_count == 1
    shutil.rmtree(folder)
