"""A write of data files that leaves nothing behind unless it is committed."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ktk_engine.log.intent import announced
from ktk_engine.log.scope import scope_of
from ktk_engine.log.write import Write
from ktk_engine.store.interface import ObjectStore


def data_write(
    store: ObjectStore, uuid: str, write: Write, operation: str
) -> AbstractContextManager[None]:
    """Announce a write of one dataset while a block runs; see `announced`.

    Args:
        store: where the dataset lives.
        uuid: the dataset, in whose folder the files are.
        write: the write that the block prepares and commits.
        operation: the verb, for people.
    """
    return announced(store, scope_of(uuid), write, operation, folder=uuid)
