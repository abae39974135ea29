"""Tries what commits need of a store, and leaves no object behind."""

from __future__ import annotations

import uuid

from ktk_engine.errors import ObjectExistsError, StoreError, TokenMismatchError
from ktk_engine.store.interface import ObjectStore

FOLDER = ".ktk/probe"


def probe(store: ObjectStore) -> None:
    """Write, read, replace and delete an object; in a folder, the lock file remains.

    Raises a `StoreError` if that fails or breaks a promise of `ObjectStore`.
    """
    key = f"{FOLDER}/{uuid.uuid4().hex}"
    store.put_if_absent(key, b"one")
    try:
        try:
            store.put_if_absent(key, b"two")
            raise StoreError(_broken(store, "it overwrites an object that exists"))
        except ObjectExistsError:
            pass
        content, token = store.get_with_token(key)
        if content != b"one":
            raise StoreError(_broken(store, "it does not return what was written"))
        store.replace(key, b"three", token)
        try:
            store.replace(key, b"four", token)
            raise StoreError(_broken(store, "it replaces an object that has changed"))
        except TokenMismatchError:
            pass
        if [info.key for info in store.list(f"{FOLDER}/")].count(key) != 1:
            raise StoreError(_broken(store, "it does not list what was written"))
    finally:
        store.delete([key])


def _broken(store: ObjectStore, what: str) -> str:
    return f"the store {store.url} cannot hold datasets safely: {what}"
