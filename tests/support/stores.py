"""Stores that tests write to, and what lies in them byte by byte."""
# ruff: noqa: F401 - what is imported here, tests take from here

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from ktk_engine.errors import StoreError
from ktk_engine.store.backoff import Backoff
from ktk_engine.store.interface import ObjectInfo, ObjectStore
from ktk_engine.store.local.local_store import LOCK_KEY, LocalStore
from ktk_engine.store.open_store import open_store
from ktk_engine.store.warehouse import Warehouse, probe

# Keys that some part of a store might take for something else.
AWKWARD = [
    "p=/x",
    "p=%2F%25/x%20y",
    "p=ü/日本",
    "a b/c=d=e",
    "-rf",
    "#?&;",
    "a+b c%2B",
    "geo++seed/table/country=U%20K/1.parquet",
]


class FaultyStore(LocalStore):
    """A local store whose calls can be made to fail.

    Attributes:
        faults: functions (method, key) -> "before" (fail without doing it), "after" (do it, then
            fail) or None; a matching fault is used up once.
        hooks: functions (method, key) called before a write.
        calls: (method, key) of every write.
        pauses: seconds that somebody waited for the store.
    """

    def __init__(self, root):
        super().__init__(root)
        self.faults = []
        self.hooks = []
        self.calls = []
        self.pauses = []

    @property
    def backoff(self):
        """Pauses are noted, not made."""
        return Backoff(sleep=self.pauses.append, jitter=lambda: 1.0)

    def put(self, key, data):
        self._do("put", key, lambda: LocalStore.put(self, key, data))

    def put_if_absent(self, key, data):
        self._do("put_if_absent", key, lambda: LocalStore.put_if_absent(self, key, data))

    def replace(self, key, data, token):
        self._do("replace", key, lambda: LocalStore.replace(self, key, data, token))

    def delete(self, keys):
        keys = list(keys)
        self._do("delete", ",".join(keys), lambda: LocalStore.delete(self, keys))

    def _do(self, method, key, action):
        self.calls.append((method, key))
        for hook in list(self.hooks):
            hook(method, key)
        for fault in list(self.faults):
            kind = fault(method, key)
            if kind is not None:
                self.faults.remove(fault)
                if kind == "after":
                    action()
                raise StoreError(f"the store gave up on {key}")
        action()


def fail(kind, method, part):
    """A fault for the first call of a method with a key that holds a text."""
    return lambda called, key: kind if called == method and part in key else None


def refuse(store: FaultyStore, method: str, part: str) -> None:
    """Let every call of a method with a key that holds a text fail, until hooks are cleared."""

    def hook(called: str, key: str) -> None:
        if called == method and part in key:
            raise StoreError(f"the store gave up on {key}")

    store.hooks.append(hook)


def keys(store: ObjectStore, prefix: str = "") -> set[str]:
    """All keys of a store."""
    return {info.key for info in store.list(prefix)}


def tree(root: Path) -> dict[str, str]:
    """Digest of every file below a folder, by relative path; the lock file apart."""
    return {
        str(path.relative_to(root)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root) != Path(LOCK_KEY)
    }


def grow_old(store: LocalStore, days: float = 30) -> None:
    """Let all files of a store be days older."""
    then = store.now().timestamp() - days * 86_400
    for path in store.root.rglob("*"):
        os.utime(path, (then, then))
