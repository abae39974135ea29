"""A warehouse: a root whose folders are schemas, each of them a Kartothek store."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ktk_engine.errors import (
    ConfigurationError,
    ConsistencyError,
    DatasetNotFoundError,
    InvalidKeyError,
    ObjectExistsError,
    StoreError,
    TokenMismatchError,
)
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import is_uuid, validate_key
from ktk_engine.store.local.local_store import LocalStore
from ktk_engine.store.open_store import open_store
from ktk_engine.store.trust import Trust, is_store_address, options_for
from ktk_engine.types.identifier import Identifier, names_alike

STORE_KEY = ".ktk/store.json"
_IGNORED, _IGNORE_ALL = ".gitignore", b"# Data, not source.\n*\n"


class Warehouse:
    """The schemas under one root; safe between threads.

    Schemas are opened once, and stores have no state except for their address. `options` are
    settings of object stores, which may hold secrets.
    """

    def __init__(
        self,
        url: str | Path,
        options: Mapping[str, Any] | None = None,
        trust: Trust | None = None,
    ) -> None:
        """Name a warehouse without reading or creating anything.

        The options also apply to other stores that share its credentials. `trust` says where views
        and cubes may lead to, by default to this warehouse alone.
        """
        self._url = str(url).rstrip("/") or "/"
        self.options = dict(options or {})
        self.trust = trust or Trust((self._url,))
        self._root = self._opened(self._url)
        self._stores: dict[Identifier, ObjectStore] = {}
        self._outside: dict[str, ObjectStore] = {}

    @property
    def url(self) -> str:
        """The root's address, without secrets."""
        return self._root.url

    @property
    def published(self) -> Warehouse:
        """The warehouse as others see it, which differs in a staged run."""
        return self

    def probe(self) -> None:
        """Try what commits need at the root; see `store.probe`."""
        self._hide_from_git()
        probe(self._root)

    def schemas(self) -> list[str]:
        """Names of the schemas, sorted; costs one listing and a few lookups."""
        names = [name.rstrip("/") for name in self._root.list_names() if name.endswith("/")]
        return [name for name in names if is_uuid(name) and self._is_schema(name)]

    def find_schema(self, name: str) -> ObjectStore | None:
        """Open a schema by its name, in any case, or another store by its address.

        None if there is no such schema. Raises a `ConsistencyError` if several names differ only by
        case, and a `DatasetNotFoundError` for an empty address.
        """
        if is_store_address(name):
            return self._at_address(name)
        if (known := self._stores.get(Identifier(name))) is not None:
            return known
        found = self._spelled(name)
        return None if found is None else self._open(found)

    def _spelled(self, name: str) -> str | None:
        """The name of an existing schema as it was created."""
        if not is_uuid(name):
            return None
        folders = [item.rstrip("/") for item in self._root.list_names() if item.endswith("/")]
        found = [item for item in names_alike(name, folders) if self._is_schema(item)]
        if len(found) > 1:
            raise ConsistencyError(
                f"{self.url} has the schemas {' and '.join(found)}, whose names differ in letter "
                "case only, which SQL ignores. Give one of the folders another name. In Python, "
                "Store opens each by its address."
            )
        return next(iter(found), None)

    def create_schema(self, name: str) -> ObjectStore:
        """Open a schema, in any case, and create it if needed.

        Raises a `ConfigurationError` for unusable names, and a `StoreError` if the store breaks a
        promise that commits rely on.
        """
        check_schema_name(name)
        self._hide_from_git()
        known = self._stores.get(Identifier(name))
        store = known or self._open(self._spelled(name) or name)
        if store.is_remote:
            if store.exists(STORE_KEY):
                return store
            probe(store)  # some servers ignore conditions and overwrite
        with suppress(ObjectExistsError):
            store.put_if_absent(STORE_KEY, b"{}")
        return store

    def drop_schema(self, name: str) -> None:
        """Delete a schema with everything in it; a missing one is fine."""
        store = self.find_schema(name)
        if store is None:
            return
        keys = [info.key for info in (*store.list(), *store.list_unfinished())]
        # The marker goes last, so that a half-deleted schema is still a schema.
        store.delete([key for key in keys if key != STORE_KEY])
        store.delete([STORE_KEY])
        self._stores.pop(Identifier(name), None)

    def _hide_from_git(self) -> None:
        """Let git ignore a new folder, since data is not part of a project."""
        if isinstance(self._root, LocalStore) and not self._root.root.exists():
            with suppress(ObjectExistsError):
                self._root.put_if_absent(_IGNORED, _IGNORE_ALL)

    def _at_address(self, url: str) -> ObjectStore:
        """Open a store outside this warehouse."""
        store = self._outside.get(url)
        if store is None:
            store = self._opened(url)
            if not store.list_names():
                raise DatasetNotFoundError(
                    f"There is no store at {url}: the folder is missing or empty. Give the "
                    "folder that holds the datasets (files `*.by-dataset-metadata.json`)."
                )
        return self._outside.setdefault(url, store)

    def _open(self, name: str) -> ObjectStore:
        # One step each, so that another thread may drop a schema in between.
        key = Identifier(name)
        return self._stores.get(key) or self._stores.setdefault(
            key, self._opened(f"{self._url}/{name}")
        )

    def _opened(self, url: str) -> ObjectStore:
        """Open a store, with the options if they are meant for it; see `options_for`."""
        return open_store(url, options_for(url, self._url, self.options))

    def _is_schema(self, name: str) -> bool:
        """Whether a folder has our marker or documents of Kartothek."""
        if self._root.exists(f"{name}/{STORE_KEY}"):
            return True
        return any(".by-dataset-metadata." in item for item in self._root.list_names(name))


def check_schema_name(name: str) -> None:
    """Refuse a schema name that cannot be a folder or a Kartothek store."""
    try:
        validate_key(name)
    except InvalidKeyError as error:
        raise ConfigurationError(f"The schema name {name!r} is not usable: {error}") from error
    if not is_uuid(name):
        raise ConfigurationError(
            f"The schema name {name!r} may only hold the characters A-Z a-z 0-9 + - _ ."
        )


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
