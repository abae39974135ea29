"""Tells a store whose folder does not exist from one that is empty."""

from __future__ import annotations

from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.local.local_store import LocalStore


def missing_folder(store: ObjectStore) -> str:
    """Say that a store has no folder; object stores have none that could be missing.

    Returns:
        A sentence with its path; empty if there is nothing to say.
    """
    if not isinstance(store, LocalStore) or store.root.is_dir():
        return ""
    what = "is not a folder" if store.root.exists() else "does not exist"
    return (
        f"The store's folder {store.root} {what}. Correct the path, or build something there first."
    )
