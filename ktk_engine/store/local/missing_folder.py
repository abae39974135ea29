"""Distinguishes a store whose folder does not exist from an empty one."""

from __future__ import annotations

from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.local.local_store import LocalStore


def missing_folder(store: ObjectStore) -> str:
    """A sentence about a store's missing folder; empty if it exists, and for object stores."""
    if not isinstance(store, LocalStore) or store.root.is_dir():
        return ""
    what = "is not a folder" if store.root.exists() else "does not exist"
    return (
        f"The store's folder {store.root} {what}. Correct the path, or build something there first."
    )
