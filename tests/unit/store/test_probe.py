"""The probe of a store: what it finds, and that it leaves nothing but the lock's file."""

from __future__ import annotations

import pytest

from ktk_engine.errors import StoreError
from ktk_engine.store.local.local_store import LocalStore
from ktk_engine.store.warehouse import probe


class Careless(LocalStore):
    """A store that breaks a promise."""

    def put_if_absent(self, key, data):
        self.put(key, data)


class Hasty(LocalStore):
    """A store that does not compare before it replaces."""

    def replace(self, key, data, token):
        self.put(key, data)


def test_a_good_store_passes_and_stays_as_it_was(tmp_path):
    store = LocalStore(tmp_path / "warehouse")
    store.put("a/b", b"1")
    probe(store)
    assert [info.key for info in store.list()] == ["a/b"]


def test_a_folder_that_is_not_there_yet_is_an_empty_store(tmp_path):
    store = LocalStore(tmp_path / "warehouse")
    probe(store)
    assert list(store.list()) == []


@pytest.mark.parametrize(
    ("store", "why"),
    [
        (Careless, "overwrites an object that exists"),
        (Hasty, "replaces an object that has changed"),
    ],
)
def test_a_broken_promise_is_found(tmp_path, store, why):
    with pytest.raises(StoreError, match=f"cannot hold datasets safely: it {why}"):
        probe(store(tmp_path))
    assert list(store(tmp_path).list()) == []


def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "warehouse").write_text("")
    with pytest.raises(StoreError):
        probe(LocalStore(tmp_path / "warehouse"))
