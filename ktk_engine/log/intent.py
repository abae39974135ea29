"""Intents: the note that a writer is alive, so that a clean-up spares its files."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from ktk_engine.errors import (
    CommitStateUnknownError,
    FormatError,
    ObjectNotFoundError,
    StoreError,
)
from ktk_engine.log.scope import Scope
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import join_key

HEARTBEAT_SECONDS = 600.0
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Intent:
    """A writer's note.

    Attributes:
        commit: id of the commit it prepares.
        operation: what it does, in words.
        heartbeat: when it last said that it lives, by the store's clock (UTC).
    """

    commit: str
    operation: str
    heartbeat: datetime


@contextmanager
def announced(store: ObjectStore, scope: Scope, commit: str, operation: str) -> Iterator[None]:
    """Keep an intent alive while a block runs.

    It is removed when the block ends or raises; it stays, for the clean-up to judge, only when
    the process dies or the block leaves with a `CommitStateUnknownError`.

    Args:
        store: where the scope lives.
        scope: what is being written.
        commit: id of the commit.
        operation: the verb, for people.
    """
    key = scope.intent_key(commit)
    finished = threading.Event()

    def beat() -> None:
        note = {"operation": operation, "heartbeat": store.now().isoformat()}
        store.put(key, json.dumps(note).encode())

    def keep_beating() -> None:
        while not finished.wait(HEARTBEAT_SECONDS):
            try:
                beat()
            except StoreError:
                continue  # the next beat may succeed; the age limit is a day

    beat()
    thread = threading.Thread(target=keep_beating, name=f"ktk-intent-{commit}", daemon=True)
    thread.start()
    known = True
    try:
        yield
    except CommitStateUnknownError:
        known = False
        raise
    finally:
        finished.set()
        thread.join()
        if known:
            _withdraw(store, key)


def _withdraw(store: ObjectStore, key: str) -> None:
    """Remove a note. A failure must not turn a commit into an error: the note grows old."""
    try:
        store.delete([key])
    except StoreError as error:
        _LOGGER.warning("The intent %s is left to the clean-up: %s", key, error)


def read_intents(store: ObjectStore, scope: Scope) -> list[Intent]:
    """Read the notes of all writers of a scope, dead ones among them.

    Raises:
        FormatError: a note is damaged; whose files it protects is then unknown.
    """
    folder = join_key(scope.folder, "intent")
    intents = []
    for name in store.list_names(folder):
        try:
            note = json.loads(store.get(join_key(folder, name)))
            heartbeat = datetime.fromisoformat(note["heartbeat"])
            intents.append(Intent(name.partition(".")[0], note["operation"], heartbeat))
        except ObjectNotFoundError:
            continue  # its writer has just finished
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"Intent {join_key(folder, name)} is damaged: {error!r}") from error
    return intents
