"""Datasets of a cube that one run replaces: what does not fit leaves until it is rewritten."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count, permutations
from threading import Barrier

import pyarrow as pa
import pytest

from ktk_engine.errors import CommitConflictError, ConsistencyError, TypeClassError
from tests.support.changes import Source, WriteRequest, build, build_from
from tests.support.committed import resolve, scope_of
from tests.support.queries import load_cube
from tests.support.stores import LocalStore

TARGETS = {
    "cells": WriteRequest("cells", "seed", "c", ("L",)),
    "extra": WriteRequest("extra", "enrichment", "c", ("L",)),
    "more": WriteRequest("more", "enrichment", "c", ("L",)),
}
NUMBERS = pa.array([1, 2, 3])
TEXTS = pa.array(["1", "2", "3"])
OLD = {
    "cells": pa.table({"L": NUMBERS, "v": [1, 2, 3]}),
    "extra": pa.table({"L": NUMBERS, "w": [1, 2, 3]}),
    "more": pa.table({"L": NUMBERS, "x": [1, 2, 3]}),
}
CHANGES = {
    "class": {name: table.set_column(0, "L", TEXTS) for name, table in OLD.items()},
    "moved": {**OLD, "extra": OLD["more"], "more": OLD["extra"]},
    "cycle": {
        "cells": OLD["extra"],
        "extra": OLD["more"],
        "more": OLD["cells"],
    },
}


@pytest.fixture
def store(tmp_path):
    found = LocalStore(tmp_path)
    for name, table in OLD.items():
        build(found, table, TARGETS[name])
    return found


def state_of(store):
    return resolve(store, scope_of(TARGETS["cells"].uuid))


def run(store, name, table, left, before=lambda: None):
    """Write one dataset as a full refresh does that has others left to write."""

    def read():
        before()
        return table, Source.given(table).read()[1]

    rebuilt = {"full_refresh": True, "rebuilt": lambda: frozenset(left) - {name}}
    result = build_from(store, Source(read, True), replace(TARGETS[name], **rebuilt))
    left.discard(name)
    return result


def check(store, new):
    cube = load_cube(state_of(store))
    for name, table in new.items():
        assert cube.snapshots[name].schema.names == table.column_names
        assert cube.snapshots[name].rows == 3


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("order", list(permutations(TARGETS)))
def test_any_order(store, change, order):
    left, new = set(order), CHANGES[change]
    for name in order:
        run(store, name, new[name], left)
    check(store, new)


@pytest.mark.parametrize("change", CHANGES)
def test_at_once(store, change):
    """All have looked at the cube before any of them commits."""
    left, new, barrier = set(TARGETS), CHANGES[change], Barrier(3)
    met: set[str] = set()

    def once(name):
        if name not in met:
            met.add(name)
            barrier.wait(60)

    with ThreadPoolExecutor(3) as pool:
        work = [
            pool.submit(run, store, name, table, left, lambda name=name: once(name))
            for name, table in new.items()
        ]
        for done in work:
            done.result()
    check(store, new)


def test_one_that_was_replaced_after_this_one_looked_at_the_cube(store):
    """It is not left to write any more, and the cube as this one saw it has the old one."""
    left, new, others = set(TARGETS), CHANGES["class"], ["extra"]

    def replaced_meanwhile():
        while others:
            name = others.pop()
            run(store, name, new[name], left)

    result = run(store, "cells", new["cells"], left, replaced_meanwhile)
    assert result.leaving == ()
    run(store, "more", new["more"], left)
    check(store, new)


def test_only_what_does_not_fit_leaves(store):
    new = OLD["extra"].append_column("x", pa.array([1, 2, 3]))
    result = run(store, "extra", new, {"cells", "extra", "more"})
    assert result.leaving == ("more",)
    assert "taken out of the cube until this run builds it: more" in str(result)
    assert sorted(state_of(store).datasets) == ["c++cells", "c++extra"]


def test_what_is_not_rebuilt_stays(store):
    before = state_of(store).version
    with pytest.raises(TypeClassError):
        run(store, "extra", CHANGES["class"]["extra"], {"extra", "more"})
    assert state_of(store).version == before


def test_a_cube_without_its_seed_dataset_says_so(store):
    result = run(store, "extra", CHANGES["class"]["extra"], set(TARGETS))
    assert result.leaving == ("cells", "more")
    with pytest.raises(ConsistencyError, match="has no seed dataset yet"):
        load_cube(state_of(store))


def test_others_conflict_as_always(store):
    table, versions = OLD["extra"], count()

    def interrupted():
        other = pa.table({"L": NUMBERS, "w": [next(versions)] * 3})
        build(store, other, TARGETS["extra"])

    with pytest.raises(CommitConflictError):

        def read():
            interrupted()
            return table, Source.given(table).read()[1]

        build_from(store, Source(read, True), replace(TARGETS["extra"], full_refresh=True))
