"""Notes of what datasets were computed from."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import get_args

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.format import own_format  # deep: what later versions write
from ktk_engine.format.own_format import FORMAT, with_format  # deep: what later versions write
from ktk_engine.log.change.reads import Read, Reads
from ktk_engine.log.computed import (
    CHANGES_ROWS,
    Computed,
    DatasetVersion,
    changed_since,
    read_computed,
    relative_store,
    versions_read,
    write_computed,
)
from ktk_engine.log.entry import Operation
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import resolve
from tests.support.changes import (
    Notes,
    Retention,
    StagedStore,
    WriteRequest,
    build,
    change_indexes,
    comment_on,
    note,
    publish_stages,
    remove,
    rename,
    restore,
    run_cleanup,
    tag_version,
    undrop,
)
from tests.support.dataset_builder import append_as_kartothek
from tests.support.documents import Comments

TABLE = scope_of("t")
NOTE = Computed(
    3,
    "c" * 32,
    datetime(2026, 11, 28, tzinfo=UTC),
    {"sql": "ab" * 32, "config": "cd" * 32},
    (
        DatasetVersion("", "nyc++weather", 12, "a" * 32),
        DatasetVersion("staging", "trips", 0, "", "e" * 64),
    ),
    {"date 'today'": "line 7"},
)


def rows(*numbers):
    return pa.table({"x": numbers})


def test_a_note_is_read_as_it_was_written(store):
    write_computed(store, TABLE, "t", NOTE)
    assert read_computed(store, TABLE, "t") == NOTE
    assert [item.scope.folder for item in NOTE.read] == [".ktk/cube/nyc", ".ktk/dataset/trips"]
    write_computed(store, TABLE, "t", Computed(4, "d" * 32, NOTE.time))
    assert read_computed(store, TABLE, "t").version == 4


def test_a_note_is_small(store):
    many = [DatasetVersion("", f"cube_of_flights++dataset_{n}", n, "a" * 32) for n in range(100)]
    sizes = []
    for read in ((), tuple(many)):
        write_computed(store, TABLE, "t", Computed(1, "c" * 32, NOTE.time, NOTE.work, read))
        sizes.append(len(store.get(TABLE.computed_key("t"))))
    assert sizes[0] < 2_000
    assert sizes[1] - sizes[0] < 100 * 200


def _changed(**changes):
    def change(data):
        document = json.loads(data)
        document.pop("sha256")
        return json.dumps({**document, **changes}).encode()

    return change


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-10],
        lambda data: data.replace(b"today", b"later"),
        lambda data: data.replace(b'"format": %d' % FORMAT, b'"format": %d' % (FORMAT + 1)),
        lambda data: b"[]",
        lambda data: b"\xff",
        _changed(version="3"),
        _changed(read=[{"store": "", "uuid": "../t", "version": 1, "commit": ""}]),
    ],
)
def test_a_damaged_or_foreign_note_is_none(store, damage):
    assert read_computed(store, TABLE, "t") is None
    write_computed(store, TABLE, "t", NOTE)
    key = TABLE.computed_key("t")
    store.put(key, damage(store.get(key)))
    assert read_computed(store, TABLE, "t") is None


@pytest.mark.parametrize(
    ("change", "needs"),
    [({"read": [{"store": "", "uuid": "a/b", "version": 1, "commit": "", "document": ""}]}, []),
     ({"work": {"sql": 1}}, []), ({"time": "2026-11-28"}, []), ({}, ["what_comes_later"])],
)  # fmt: skip
def test_a_sound_document_with_other_content_is_none(store, change, needs, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(
            own_format,
            "with_format",
            lambda document: {**with_format(document), **change, "needs": needs},
        )
        write_computed(store, TABLE, "t", NOTE)
    assert read_computed(store, TABLE, "t") is None


def test_what_later_versions_say_is_ignored(store, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(
            own_format,
            "with_format",
            lambda document: {**with_format(document), "by": "a later version"},
        )
        write_computed(store, TABLE, "t", NOTE)
    assert read_computed(store, TABLE, "t") == NOTE


def test_every_operation_says_whether_it_may_change_rows():
    assert set(CHANGES_ROWS) == set(get_args(Operation))


def test_stores_are_named_as_they_lie_beside_each_other():
    own = "file:///data/warehouse/marts"
    assert relative_store(own, own) == ""
    assert relative_store(own, "file:///data/warehouse/staging") == "staging"
    assert relative_store(own, "s3://bucket/staging") == "s3://bucket/staging"


def test_what_was_read_is_noted_with_version_and_commit(store):
    build(store, rows(1), WriteRequest("t"))
    build(store, rows(2), WriteRequest("t", mode="append"))
    state = resolve(store, TABLE)
    (found,) = versions_read(store, [Reads((Read(state, "t"),)), Reads((Read(state, "t"),))])
    assert found == DatasetVersion("", "t", 2, state.head.commit)
    assert changed_since(state, "t", 2, state.head.commit) is None
    assert changed_since(state, "t", 1, state.head.parent) == 2
    assert changed_since(state, "t", 2, "f" * 32) == 2
    assert changed_since(state, "u", 1, "f" * 32) == 0


def _adopted(store):
    append_as_kartothek(store, "t", rows(9))
    build(store, rows(3), WriteRequest("t"), mode="append")


def _brought_back(store):
    remove(store, "t")
    undrop(store, "t")


# Each operation, and the version with which it ends what a note claims of version 2.
OPERATIONS = {
    "rebuild": (lambda store: build(store, rows(1, 2, 3), WriteRequest("t")), 3),
    "append": (lambda store: build(store, rows(3), WriteRequest("t"), mode="append"), 3),
    "replace": (lambda store: build(store, rows(3), WriteRequest("t"), mode="nothing"), 3),
    "remove": (lambda store: remove(store, "t"), 0),
    "adopt": (_adopted, 3),
    "a document of another program": (lambda s: append_as_kartothek(s, "t", rows(9)), 0),
    "cleanup": (lambda store: run_cleanup(store, TABLE, Retention(timedelta(0), 1)), None),
    "compact": (lambda store: Store(store.root).table("t").compact(), None),
    "comment": (lambda store: comment_on(store, "t", Comments("All")), None),
    "undrop": (_brought_back, 4),
    "restore": (lambda store: restore(store, "t", 1), 3),
    "index": (lambda store: change_indexes(store, "t", ["x"]), None),
    "alter": (lambda store: Store(store.root).table("t").alter(add={"y": pa.int64()}), 3),
    "properties": (lambda store: note(store, "t", Notes({"a": "b"})), None),
    "tag": (lambda store: tag_version(store, "t", "q1", 1), None),
}


def test_the_table_has_all_operations():
    assert set(OPERATIONS) >= set(get_args(Operation))


@pytest.mark.parametrize("name", OPERATIONS)
def test_which_operation_ends_a_claim(store, name):
    change, ends = OPERATIONS[name]
    build(store, rows(1), WriteRequest("t"))
    done = build(store, rows(2), WriteRequest("t"), mode="append")
    change(store)
    state = resolve(store, TABLE)
    assert changed_since(state, "t", done.version, done.commit) == ends
    comment_on(store, "t", Comments("x")) if ends is None else None
    assert changed_since(resolve(store, TABLE), "t", done.version, done.commit) == ends


def test_a_note_goes_with_its_dataset(store):
    for uuid in ("t", "u"):
        done = build(store, rows(1), WriteRequest(uuid))
        write_computed(store, scope_of(uuid), uuid, replace(NOTE, commit=done.commit))
    remove(store, "t")
    assert read_computed(store, TABLE, "t") is None
    rename(store, "u", "v")
    for uuid in ("u", "v"):
        assert read_computed(store, scope_of(uuid), uuid) is None


def staged_note(stage, uuid, done, read=()):
    state = resolve(stage, scope_of(uuid))
    found = versions_read(stage, [Reads(tuple(Read(item, name) for item, name in read))])
    made = Computed(done.version, done.commit, state.store.now(), NOTE.work, found)
    write_computed(stage, scope_of(uuid), uuid, made)


@pytest.mark.parametrize("meanwhile", [False, True])
def test_a_staged_run_notes_what_it_published(store, meanwhile):
    build(store, rows(1), WriteRequest("a"))
    stage = StagedStore(store)
    first = build(stage, rows(2), WriteRequest("a"), mode="append")
    state = resolve(stage, scope_of("a"))
    second = build(stage, rows(1, 2), WriteRequest("b"))
    staged_note(stage, "a", first)
    staged_note(stage, "b", second, [(state, "a")])
    assert read_computed(store, scope_of("b"), "b") is None
    if meanwhile:
        build(store, rows(3), WriteRequest("a"), mode="append")
    publish_stages([stage])
    found = read_computed(store, scope_of("b"), "b")
    if meanwhile:
        assert found is None
        assert read_computed(store, scope_of("a"), "a") is None
        return
    newest = resolve(store, scope_of("a"))
    assert [(item.version, item.commit) for item in found.read] == [(2, newest.head.commit)]
    assert changed_since(newest, "a", 2, newest.head.commit) is None
    assert changed_since(resolve(store, scope_of("b")), "b", found.version, found.commit) is None
