"""Stores that are read as one."""

from __future__ import annotations

import pickle

import pytest

from ktk_engine.errors import StoreError
from ktk_engine.store.joined_store import JoinedStore
from tests.support.stores import LocalStore


@pytest.fixture
def joined(tmp_path):
    own, other = LocalStore(tmp_path / "own"), LocalStore(tmp_path / "other")
    for store in (own, other):
        store.put("a/x", store.url.encode())
        store.put("b/x", store.url.encode())
        store.put(".ktk/cube/c/snapshots/x/segments/b.1a2b.parquet", store.url.encode())
    return JoinedStore(own, {"b": other})


def test_folders_are_read_where_they_are(joined):
    own, other = joined.own.url.encode(), joined.others["b"].url.encode()
    again = pickle.loads(pickle.dumps(joined))
    for store in (joined, again):
        assert store.get("a/x") == own
        assert store.get("b/x") == other
        assert store.get(".ktk/cube/c/snapshots/x/segments/b.1a2b.parquet") == other
        assert store.get_range("b/x", 0, 4) == other[:4]
        assert store.get_with_token("b/x")[0] == other
        assert store.open_read("b/x").read() == other
        assert store.exists("b/x")
        assert not store.exists("b/y")
        assert store.uri("b/x") == joined.others["b"].uri("b/x")
        assert store.list_names("b") == ["x"]
        assert [item.key for item in store.list("b/")] == ["b/x"]
        assert not store.is_remote
        assert store.url == joined.own.url


def test_nothing_is_written(joined):
    tries = [
        lambda: joined.put("b/y", b""),
        lambda: joined.put_if_absent("a/y", b""),
        lambda: joined.replace("a/x", b"", ""),
        lambda: joined.delete(["b/x"]),
        lambda: joined.open_write("a/z"),
    ]
    for write in tries:
        with pytest.raises(StoreError, match="nothing is written"):
            write()
