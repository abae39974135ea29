"""A clean-up that keeps nothing, between any two steps of those who read what it removes."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from ktk_engine.errors import CommitConflictError, ObjectNotFoundError, StoreError, VersionGoneError
from ktk_engine.log import garbage
from ktk_engine.log.garbage import Retention
from ktk_engine.log.scope import cube_scope, scope_of
from ktk_engine.log.state import resolve
from ktk_engine.log.version import state_at
from tests.support.changes import (
    Source,
    WriteRequest,
    build,
    comment_on,
    plan_cleanup,
    remove,
    retry_write_on_conflict,
    run_cleanup,
)
from tests.support.documents import Comments, read_index, stored_index
from tests.support.stores import LocalStore, fail
from tests.support.tiny_bounds import set_tiny_bounds

CUBE = cube_scope("c")
SEED = WriteRequest("s", "seed", "c", ("x",), ("p",), indexes=("v", "w"), buckets=2)
NOTHING = Retention(timedelta(0), 1)


def cells(*numbers, p="a"):
    return pa.table(
        {"p": [p] * len(numbers), "x": numbers, "v": [n % 2 for n in numbers], "w": numbers}
    )


def append(store, *numbers):
    return build(store, cells(*numbers), SEED, mode="append")


def overtake(store, *numbers):
    """Append and clean up, so that what was there before is gone."""
    build(store, cells(*numbers, p="b"), SEED, mode="append")
    assert run_cleanup(store, CUBE, NOTHING).version


def rows(store):
    state = resolve(store, CUBE)
    snapshot = state.snapshot("c++s")
    keys = snapshot.files["key"].to_pylist()
    found = pa.concat_tables([pq.ParquetFile(store.root / key).read() for key in keys])
    for name, key in snapshot.indices.items():
        pairs = stored_index(store, key)
        assert set(pairs["label"].to_pylist()) == set(snapshot.labels)
        assert set(pairs["value"].to_pylist()) == set(found[name].to_pylist())
    return sorted(found["x"].to_pylist())


def at_call(store, number, method, part, action):
    """Do something before the n-th write of a kind, once."""
    seen = []

    def hook(called, key):
        if called == method and part in key:
            seen.append(key)
            if len(seen) == number:
                store.hooks.remove(hook)
                action()

    store.hooks.append(hook)


@pytest.mark.parametrize(
    ("number", "part"),
    [(1, "/intent/"), (1, "/indices/"), (2, "/indices/"), (1, "/snapshots/"), (1, "/log/")],
)
@pytest.mark.parametrize("verb", ["append", "rewrite", "compact"])
def test_a_write_goes_on_top_of_what_a_cleanup_left(store, verb, number, part):
    build(store, cells(1, 2), SEED)
    state = resolve(store, CUBE)
    method = "put" if part == "/intent/" else "put_if_absent"
    at_call(store, number, method, part, lambda: overtake(store, 3))
    if verb == "append":
        append(store, 4)
    else:
        old = {"replaced": state.snapshot("c++s").labels, "state": state}
        noted = "replace" if verb == "rewrite" else "compact"
        build(store, cells(1, 2, 4), SEED, mode="files", verb=noted, **old)
    assert rows(store) == [1, 2, 3, 4]


def test_a_rewrite_of_what_was_rebuilt_and_cleaned_is_a_conflict(store):
    build(store, cells(1, 2), SEED)
    state = resolve(store, CUBE)
    labels = state.snapshot("c++s").labels

    def rebuild():
        build(store, cells(7), SEED)
        assert run_cleanup(store, CUBE, NOTHING).version

    at_call(store, 2, "put_if_absent", "/indices/", rebuild)
    with pytest.raises(CommitConflictError, match="was rebuilt by version 2"):
        build(store, cells(1, 2, 4), SEED, mode="files", replaced=labels, state=state)
    assert rows(store) == [7]


def test_removals_and_comments_go_on(store):
    build(store, cells(1), SEED)
    build(store, pa.table({"x": [1], "q": [1]}), WriteRequest("e", "enrichment", "c", ("x",)))
    at_call(store, 1, "put", "/intent/", lambda: overtake(store, 3))
    assert comment_on(store, "c++s", Comments("what it is"))
    at_call(store, 1, "put", "/intent/", lambda: overtake(store, 5))
    remove(store, "c", "e")
    assert rows(store) == [1, 3, 5]


def test_what_reads_a_cleaned_version_is_computed_anew(store):
    build(store, cells(1, 2), SEED)
    attempts = []

    def write(state, rows, target):
        attempts.append(state.version)
        if len(attempts) == 1:
            overtake(store, 3)
        index = read_index(store.get(state.snapshot("c++s").indices["w"]))
        return max(index["value"].to_pylist())

    assert retry_write_on_conflict(store, SEED, Source.given(None), write) == 3
    assert attempts == [1, 3]


def test_an_error_that_has_nothing_to_do_with_a_cleanup_stays(store):
    build(store, cells(1, 2), SEED)
    state = resolve(store, CUBE)
    store.delete([state.snapshot("c++s").indices["w"]])
    append_other = WriteRequest("e", "enrichment", "c", ("x",))
    build(store, pa.table({"x": [1], "q": [1]}), append_other)  # the log goes on
    with pytest.raises(ObjectNotFoundError, match="/indices/w/"):
        append(store, 3)
    with pytest.raises(ZeroDivisionError), state.reading():
        raise ZeroDivisionError


def test_readers_learn_that_their_version_is_gone(store):
    build(store, cells(1, 2), SEED)
    unread = resolve(store, CUBE)
    opened = Store(store.root).cube("c")
    overtake(store, 3)
    text = r"cube/c of file://.*: version 1 was cleaned up while it was read \(by version 3\)"
    with pytest.raises(VersionGoneError, match=text):
        unread.snapshot("c++s")
    with pytest.raises(VersionGoneError, match=text):
        opened.query(where="v = 1")
    assert Store(store.root).cube("c").version == 3


def test_opening_a_cube_takes_the_next_version(store, monkeypatch):
    build(store, cells(1, 2), SEED)
    plain, seen = LocalStore.get, []

    def get(self, key):
        if "/snapshots/" in key and not seen:
            seen.append(key)
            overtake(store, 3)
        return plain(self, key)

    monkeypatch.setattr(LocalStore, "get", get)
    assert Store(store.root).cube("c").version == 3


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_cleanup_that_another_one_overtakes_judges_anew(store, monkeypatch, number):
    build(store, cells(1), SEED)
    build(store, cells(2), SEED)
    plain, seen = LocalStore.get, []

    def get(self, key):
        if "/snapshots/" in key:
            seen.append(key)
            if len(seen) == number:
                build(store, cells(7), SEED)
                run_cleanup(store, CUBE, NOTHING)
        return plain(self, key)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "get", get)
        run_cleanup(store, CUBE, Retention(timedelta(0), 2))
    assert len(seen) >= number
    assert rows(store) == [7]


def test_a_deletion_that_fails_is_finished_by_the_next_cleanup(store):
    build(store, cells(1), SEED)
    build(store, cells(2), SEED)
    store.faults.append(fail("before", "delete", "/table/"))
    with pytest.raises(StoreError, match="Version 3 of the log lists what goes: run the clean-up"):
        run_cleanup(store, CUBE, NOTHING)
    assert run_cleanup(store, CUBE, NOTHING).version == 4
    assert plan_cleanup(store, CUBE, NOTHING).is_empty


def test_a_version_whose_root_is_left_is_gone_as_well(store, monkeypatch):
    """Commits land while a clean-up lists: it gives up segments that a root it never saw names."""
    set_tiny_bounds(monkeypatch)
    face, opened = Store(store.root), []

    def write(partitions, mode="append"):
        rows = pa.table({"p": list(partitions), "x": [1] * len(partitions)})
        return face.write_table("t", rows, mode, partition_by=["p"])

    def meanwhile(*arguments):
        if not opened:
            opened.append(write("h"))
            write("abcd", "overwrite")
            write("jk")
        return leftovers(*arguments)

    for partitions in ("abc", "de", "fg"):
        write(partitions)
    leftovers = garbage._leftovers
    monkeypatch.setattr(garbage, "_leftovers", meanwhile)
    assert face.cleanup("t", timedelta(0), 1, delete=True).objects
    version = opened[0].version
    entry = state_at(resolve(store, scope_of("t")), version).datasets["t"].entry
    assert store.exists(entry.snapshot)
    for table in (opened[0], face.table("t", version=version)):
        with pytest.raises(VersionGoneError, match=f"version {version} was cleaned up"):
            table.query().to_arrow()
    with pytest.raises(VersionGoneError, match="can no longer be tagged"):
        face.table("t", version=version).tag("kept")
    assert not face.table("t").check(deep=True)["problems"]
