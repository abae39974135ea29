"""A write of data files that leaves nothing behind unless it is committed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ktk_engine.errors import CommitStateUnknownError, KtkError
from ktk_engine.log.intent import announced
from ktk_engine.log.scope import scope_of
from ktk_engine.store.interface import ObjectStore

_LOGGER = logging.getLogger(__name__)


@contextmanager
def data_write(store: ObjectStore, uuid: str, commit_id: str, operation: str) -> Iterator[None]:
    """Announce a write while a block runs, and delete its files if the block raises.

    Where it is unknown whether the commit went through, files and announcement stay for the
    clean-up to judge.

    Args:
        store: where the dataset lives.
        uuid: the dataset.
        commit_id: the commit that the block prepares; every file's name holds it.
        operation: the verb, for people.
    """
    with announced(store, scope_of(uuid), commit_id, operation):
        try:
            yield
        except CommitStateUnknownError:
            raise
        except BaseException:
            _remove_traces(store, uuid, commit_id)
            raise


def _remove_traces(store: ObjectStore, uuid: str, commit_id: str) -> None:
    """Delete every object of a commit; what cannot be deleted now is left to the clean-up."""
    try:
        folders = (f"{uuid}/", f"{scope_of(uuid).folder}/snapshots/{commit_id}/")
        keys = [
            info.key for folder in folders for info in store.list(folder) if commit_id in info.key
        ]
        store.delete(keys)
    except KtkError as error:
        _LOGGER.warning("Files of the failed write %s were left behind: %s", commit_id, error)
