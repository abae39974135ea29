"""Another name for a cube or table: whatever happens, one of the two names has all rows."""

from __future__ import annotations

import sys
from dataclasses import replace

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import (
    CommitConflictError,
    ConsistencyError,
    DatasetNotFoundError,
    KtkError,
    SpecificationError,
    StoreError,
)
from ktk_engine.maintain.check import check
from ktk_engine.maintain.rename import rename
from ktk_engine.maintain.versions.undrop import undrop
from tests.support.changes import WriteRequest, build, check_publishing
from tests.support.committed import DbtNode, builder_of, cube_scope, resolve
from tests.support.dataset_builder import (
    append_as_kartothek,
    build_nyc,
    build_table,
    commit_change,
    flights,
    flights_builder,
    write_plain_nyc,
)
from tests.support.documents import ViewDocument, add_view
from tests.support.interrupting_store import InterruptingStore
from tests.support.stores import keys, refuse


def rows(store, name):
    opened = Store.of(store).relation(name)
    return opened.query().to_arrow(engine="local").to_pylist()


@pytest.mark.parametrize("write", [build_nyc, write_plain_nyc], ids=["ours", "kartothek"])
def test_everything_has_the_new_name_and_nothing_the_old_one(store, write):
    write(store)
    before = rows(store, "nyc")
    cube = Store(store.root).cube("nyc").rename("new+york")
    assert (cube.name, cube.version) == ("new+york", 1)
    assert rows(store, "new+york") == before
    assert Store(store.root).cubes() == ["new+york"]
    assert not check(store, "new+york").problems
    assert not [key for key in keys(store) if key.startswith("nyc++") and "metadata.json" in key]
    assert not [key for key in keys(store) if "/intent/" in key]
    with pytest.raises(DatasetNotFoundError):
        Store(store.root).cube("nyc")
    assert resolve(store, cube_scope("nyc")).head.history["reason"] == "renamed to new+york"
    undrop(store, "nyc", "flights")
    assert Store(store.root).cube("nyc").query(["delay"]).count(engine="local") == 4


def test_a_table(store):
    build_table(store)
    table = Store(store.root).table("plain").rename("simple")
    assert table.name == "simple" and rows(store, "simple") == [{"a": n} for n in (1, 2, 3)]
    assert Store(store.root).tables() == ["simple"]


def test_its_datasets_keep_builder_and_relation(store):
    build_nyc(store)

    def built(commit_id):
        change = flights_builder(store).rebuild(flights(), commit_id)
        return replace(change, relation="departures", builder=DbtNode("model.x.departures", "x"))

    commit_change(store, built)
    rename(store, "nyc", "n")
    state = resolve(store, cube_scope("n"))
    assert state.datasets["n++flights"].entry.relation == "departures"
    assert str(builder_of(state, "n++flights")) == "model.x.departures"


def test_what_stands_in_the_way_is_said(store):
    build_nyc(store)
    build_table(store)
    build_table(store, "other")
    view = ViewDocument("all_of_nyc", "cube", cube="nyc")
    for name, new, error, said in (
        ("nyc", "nyc", ConsistencyError, "has this name already"),
        ("nyc", "plain", ConsistencyError, "has plain already"),
        ("plain", "nyc", ConsistencyError, "has nyc already"),
        ("plain", "other", ConsistencyError, "has other already"),
        ("plain", "flights", ConsistencyError, "has flights already"),
        ("nyc", "a b", SpecificationError, "may only hold"),
        ("nyc", "a++b", SpecificationError, "must not hold"),
        ("nyc", "a+", SpecificationError, "must not end with"),
        ("nyk", "x", DatasetNotFoundError, "Did you mean nyc"),
    ):
        with pytest.raises(error, match=said):
            rename(store, name, new)
    Store(store.root).cube("nyc").tag("q1")
    with pytest.raises(ConsistencyError, match=r"store.relation\('nyc'\).untag\('q1'\)"):
        rename(store, "nyc", "n")
    Store(store.root).cube("nyc").untag("q1")
    add_view(store, view)
    with pytest.raises(ConsistencyError, match="drop view all_of_nyc"):
        rename(store, "nyc", "n")
    assert not [key for key in keys(store) if "/n/" in key or key.startswith("n++")]


def meanwhile(store, part, action):
    def hook(method, key):
        if part in key and hook in store.hooks:
            store.hooks.remove(hook)
            action()

    store.hooks.append(hook)


COPIED, REMOVED = "n++flights.by-dataset", "cube/nyc/log/"


# Between the last look and the commit that removes, other programs cannot be noticed.
@pytest.mark.parametrize(
    ("at", "what"),
    [
        (COPIED, "rows"),
        (COPIED, "index"),
        (COPIED, "foreign"),
        (REMOVED, "rows"),
        (REMOVED, "index"),
    ],
)
def test_what_somebody_commits_meanwhile_is_not_lost(store, at, what):
    build_nyc(store)
    builder, cube = flights_builder(store), Store(store.root).cube("nyc")
    actions = {
        "rows": lambda: builder.commit_append(flights(("JFK",), 50)),
        "index": lambda: cube.index("delay"),
        "foreign": lambda: append_as_kartothek(
            store, "nyc++airlines", pa.table({"carrier": ["DL"], "airline": ["Delta"]})
        ),
    }
    meanwhile(store, at, actions[what])
    with pytest.raises(CommitConflictError, match="keeps its name"):
        rename(store, "nyc", "n")
    assert Store(store.root).cubes() == ["nyc"]
    left = Store(store.root).cube("nyc")
    assert left.version == 3 + (what != "foreign")
    assert left.stats()["airlines"].rows == 2 + (what == "foreign")
    rename(store, "nyc", "n")
    assert Store(store.root).cubes() == ["n"]
    assert Store(store.root).cube("n").stats()["airlines"].rows == 2 + (what == "foreign")


def test_what_is_committed_under_the_new_name_is_not_taken_back(store):
    """Only the copy itself is: the old name was changed, and so was the new one."""
    build_nyc(store)

    def both():
        flights_builder(store).commit_append(flights(("JFK",), 50))
        Store(store.root).cube("n").index("delay")

    meanwhile(store, COPIED, both)
    with pytest.raises(CommitConflictError, match="n was changed meanwhile, too, and stays"):
        rename(store, "nyc", "n")
    assert Store(store.root).cubes() == ["n", "nyc"]
    assert [Store(store.root).cube(name).version for name in ("n", "nyc")] == [2, 4]


def test_a_name_that_another_relation_gets_meanwhile(store):
    build_nyc(store)
    meanwhile(store, COPIED, lambda: build(store, pa.table({"x": [1]}), WriteRequest("n")))
    with pytest.raises(CommitConflictError, match="n was given to another relation meanwhile"):
        rename(store, "nyc", "n")
    assert Store(store.root).cubes() == ["nyc"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, StoreError])
@pytest.mark.parametrize("when", ["before", "after"])
def test_at_every_moment_one_name_has_all_rows_and_the_same_call_finishes(error, when):
    """A call of the store fails; those that a dead process makes no more fail with it."""
    prepared = InterruptingStore()
    build_nyc(prepared)
    expected, number = rows(prepared, "nyc"), 0
    while True:
        store = InterruptingStore(prepared.objects, number, when, error, again=True)
        try:
            rename(store, "nyc", "n")
            ended = True
        except (KtkError, KeyboardInterrupt):
            ended = number >= len(store.calls)
        alive = InterruptingStore(store.objects)
        names = Store.of(alive).cubes()
        assert names in (["nyc"], ["n"], ["n", "nyc"]), number
        assert all(rows(alive, name) == expected for name in names), number
        if "nyc" in names:
            rename(alive, "nyc", "n")
        assert Store.of(alive).cubes() == ["n"] and rows(alive, "n") == expected, number
        if ended:
            break
        number += 7
    assert number > 60


def test_an_error_after_the_copy_says_that_it_is_committed(store):
    build_nyc(store)
    refuse(store, "put_if_absent", COPIED)
    with pytest.raises(StoreError, match=r"^n is committed, but not published for Kar") as caught:
        rename(store, "nyc", "n")
    assert caught.value.committed
    assert "may both be there" in caught.value.__notes__[-1]
    store.hooks.clear()
    refuse(store, "put_if_absent", REMOVED)
    with pytest.raises(KtkError) as again:
        rename(store, "nyc", "n")
    assert again.value.committed and "may both be there" in again.value.__notes__[-1]
    store.hooks.clear()
    rename(store, "nyc", "n")
    assert Store(store.root).cubes() == ["n"]


def test_a_copy_that_cannot_be_taken_back_is_said(store):
    build_nyc(store)

    def changed():
        flights_builder(store).commit_append(flights(("JFK",), 50))
        refuse(store, "put_if_absent", "cube/n/log/")

    meanwhile(store, COPIED, changed)
    with pytest.raises(KtkError) as caught:
        rename(store, "nyc", "n")
    assert caught.value.committed
    assert "n may still have its earlier rows. Remove n" in caught.value.__notes__[-1]
    assert Store(store.root).cubes() == ["n", "nyc"]
    store.hooks.clear()
    Store(store.root).drop("n")
    rename(store, "nyc", "n")
    assert Store(store.root).cubes() == ["n"]


@pytest.mark.parametrize(
    ("format_", "part"),
    [("delta", "_delta_log/"), ("iceberg", "iceberg/metadata/v"), ("iceberg", "")],
)
@pytest.mark.parametrize("name", ["nyc", "plain"])
def test_a_form_that_cannot_be_written_is_a_warning(store, monkeypatch, name, format_, part):
    """A store fails, or the package is missing that writes the form."""
    build_nyc(store)
    build_table(store)
    Store(store.root).relation(name).publish(format_)
    before = rows(store, name)
    if part:
        refuse(store, "put_if_absent", part)
    else:
        monkeypatch.setitem(sys.modules, "fastavro", None)
    done = rename(store, name, "n")
    assert "is committed, but its" in done.warning
    assert "n is n" not in done.warning and done.warning.count("fastavro") <= 3
    assert rows(store, "n") == before
    with pytest.raises(DatasetNotFoundError):
        Store(store.root).relation(name)
    store.hooks.clear()
    monkeypatch.undo()
    Store(store.root).relation("n").publish()
    assert {found.problem for found in check_publishing(store, "n")} == {""}


def test_command(store, ktk):
    build_nyc(store)
    before = keys(store)
    assert "Would rename nyc to n (5 files, " in ktk("rename", "nyc", "n", "--dry-run").output
    assert keys(store) == before
    assert "Renamed nyc to n (5 files, " in ktk("rename", "nyc", "n").output
    assert Store(store.root).cubes() == ["n"]
