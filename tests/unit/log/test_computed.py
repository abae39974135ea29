"""Notes of what datasets were computed from."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import get_args

import pyarrow as pa
import pytest

from ktk_engine.format import checksummed_json, own_format  # deep: what later versions write
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
from tests.support.changes import WriteRequest, build

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
        lambda data: data.replace(b'"format": 7', b'"format": 8'),
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
            checksummed_json,
            "with_format",
            lambda document: {**own_format.with_format(document), **change, "needs": needs},
        )
        write_computed(store, TABLE, "t", NOTE)
    assert read_computed(store, TABLE, "t") is None


def test_what_later_versions_say_is_ignored(store, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(
            checksummed_json,
            "with_format",
            lambda document: {**own_format.with_format(document), "by": "a later version"},
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
