"""Only one of two names that differ only in letter case is made, even at the same time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import ConsistencyError, KtkError
from tests.support.changes import StagedStore, WriteRequest, build, publish_stages, remove, rename
from tests.support.committed import list_relations
from tests.support.stores import refuse

ROWS = pa.table({"x": [1]})


def table(name):
    return lambda store: build(store, ROWS, WriteRequest(name))


def cube(name):
    return lambda store: Store.of(store).build(name, ROWS, dimension_columns=["x"])


def staged(name):
    def run(store):
        stage = StagedStore(store)
        build(stage, ROWS, WriteRequest(name))
        publish_stages([stage])

    return run


def copied(name):
    return lambda store: Store.of(store).table("other").copy_to(Store.of(store), name)


@pytest.mark.parametrize("second", [table("X"), cube("X"), staged("X"), copied("X")])
@pytest.mark.parametrize("first", [table("x"), cube("x"), staged("x"), copied("x")])
def test_one_of_two_at_once(store, first, second):
    """The second begins and ends before the first commits; each has seen that its name is free."""
    build(store, ROWS, WriteRequest("other"))
    raised = []

    def meanwhile(method, key):
        if method == "put_if_absent" and "/x/log/" in key:
            store.hooks.clear()
            with pytest.raises(ConsistencyError, match="letter case") as caught:
                second(store)
            raised.append(caught.value)

    store.hooks.append(meanwhile)
    first(store)
    assert len(raised) == 1 and "Nothing was committed" in str(raised[0])
    names = {relation.uuid or relation.name for relation in list_relations(store)}
    assert {name for name in names if name.lower().startswith("x")} in ({"x"}, {"x++seed"})


def test_a_claim_costs_one_request_and_the_next_commits_none(store):
    build(store, ROWS, WriteRequest("x"))
    assert [call for call in store.calls if "/name/" in call[1]] == [
        ("put_if_absent", ".ktk/name/x")
    ]
    build(store, ROWS, WriteRequest("x"), mode="append")
    assert len([call for call in store.calls if "/name/" in call[1]]) == 1


@pytest.mark.parametrize(
    "end",
    [
        lambda store: remove(store, "x"),
        lambda store: rename(store, "x", "y"),
        lambda store: Store.of(store).drop("x"),
    ],
)
def test_a_name_is_free_again(store, end):
    build(store, ROWS, WriteRequest("x"))
    end(store)
    build(store, ROWS, WriteRequest("X"))
    with pytest.raises(ConsistencyError, match="letter case"):
        build(store, ROWS, WriteRequest("x"))
    remove(store, "X")
    build(store, ROWS, WriteRequest("x"))


def test_a_writer_that_was_killed_holds_a_name_for_a_day(store, monkeypatch):
    refuse(store, "put_if_absent", "/log/")
    with pytest.raises(KtkError):
        build(store, ROWS, WriteRequest("x"))
    store.hooks.clear()
    with pytest.raises(ConsistencyError, match="was killed within a day"):
        build(store, ROWS, WriteRequest("X"))
    monkeypatch.setattr(type(store), "now", lambda store: datetime.now(UTC) + timedelta(days=1))
    build(store, ROWS, WriteRequest("X"))


@pytest.mark.parametrize("own", [["X"], ["x", "X"]])
def test_a_staged_run_that_does_not_get_a_name_publishes_nothing(store, own):
    """Another writer holds it, or the run itself wants both; the names in between are free."""
    if own == ["X"]:
        refuse(store, "put_if_absent", "/log/")
        with pytest.raises(KtkError):
            build(store, ROWS, WriteRequest("x"))
        store.hooks.clear()
    stage = StagedStore(store)
    for name in ("a", *own, "z"):
        build(stage, ROWS, WriteRequest(name))
    with pytest.raises(ConsistencyError, match="letter case") as caught:
        publish_stages([stage])
    assert "Nothing was committed" in str(caught.value) and "only this" not in str(caught.value)
    assert list_relations(store) == []
    stage = StagedStore(store)
    for name in ("A", "z"):
        build(stage, ROWS, WriteRequest(name))
    publish_stages([stage])
    assert [relation.uuid for relation in list_relations(store)] == ["A", "z"]


def test_two_that_take_over_one_claim(store):
    """By a token: the own claim of a name that comes again is renewed, too."""
    build(store, ROWS, WriteRequest("x"))
    remove(store, "x")

    def meanwhile(method, key):
        if method == "replace" and "/name/" in key:
            store.hooks.clear()
            build(store, ROWS, WriteRequest("x"))

    store.hooks.append(meanwhile)
    with pytest.raises(ConsistencyError, match="letter case"):
        build(store, ROWS, WriteRequest("X"))
    assert [relation.uuid for relation in list_relations(store)] == ["x"]
