"""Intents: a writer's note that it is alive, so that a clean-up spares its files."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from ktk_engine.errors import (
    CommitStateUnknownError,
    FormatError,
    KtkError,
    ObjectNotFoundError,
    StoreError,
)
from ktk_engine.format.field_types import with_field_types
from ktk_engine.format.parse_json import parse_json
from ktk_engine.log.change.after_commit import say_committed
from ktk_engine.log.pending_commit import CommitStatus, PendingCommit, remove_traces
from ktk_engine.log.scope import LogScope
from ktk_engine.messages import Message, Remedy
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import join_key

HEARTBEAT_SECONDS = 600.0
INTENT_LIFETIME = timedelta(hours=24)
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Intent:
    """A writer's note that it is alive."""

    commit: str
    operation: str  # in words
    heartbeat: datetime  # by the store's clock (UTC)

    def is_alive(self, now: datetime) -> bool:
        """Whether its writer may still be at work."""
        return now - self.heartbeat < INTENT_LIFETIME


@contextmanager
def write_intent(
    store: ObjectStore,
    scope: LogScope,
    write: PendingCommit,
    operation: str,
    folders: Collection[str] = (),
) -> Iterator[None]:
    """Keep an intent alive while a block runs, and take back a write that did not commit.

    When the block ends or raises, the write's status decides, not the exception. Files of an
    uncommitted write are deleted. If the status is unknown, the files and the intent stay for the
    clean-up, as after the death of the process. `folders` is read at the end.
    """
    key = scope.intent_key(write.commit)
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

    thread = threading.Thread(target=keep_beating, name=f"ktk-intent-{write.commit}", daemon=True)
    try:
        beat()
        thread.start()
        yield
    except StoreError as error:
        _tell(error, scope, write)
        if write.status is not CommitStatus.NOT_COMMITTED:
            raise
        message = Message(error.message.rstrip("."), ". Nothing was committed.")
        raise error.with_message(message) from error
    except BaseException as error:
        _tell(error, scope, write)
        raise
    finally:
        finished.set()
        if thread.ident is not None:
            thread.join()
        _end(store, scope, write, folders)


def _tell(error: BaseException, scope: LogScope, write: PendingCommit) -> None:
    """Say what became of an interrupted commit, which the exception does not know."""
    if write.status is CommitStatus.NOT_COMMITTED or isinstance(error, CommitStateUnknownError):
        return
    look = Remedy("history", name=scope.name)
    stands = {
        CommitStatus.COMMITTED: "is committed and stays so",
        CommitStatus.UNKNOWN: f"may be committed; nothing was deleted. Look with: {look}",
    }
    note = f"{scope}: commit {write.commit} {stands[write.status]}"
    if write.status is CommitStatus.COMMITTED:
        say_committed(error, note)
    else:
        error.add_note(note)
    _LOGGER.warning(note)


def _end(
    store: ObjectStore, scope: LogScope, write: PendingCommit, folders: Collection[str]
) -> None:
    """Remove the files that no commit names, then the note of a write whose status is known.

    What cannot be removed now is left to the clean-up, which needs the note for that. No failure
    here may hide the block's own outcome.
    """
    if write.status is CommitStatus.UNKNOWN:
        return
    try:
        if write.spare is not None:
            store.delete(write.spare)
        elif write.status is CommitStatus.NOT_COMMITTED:
            remove_traces(store, scope, write, folders)
        store.delete([scope.intent_key(write.commit)])
    except Exception as error:
        _LOGGER.warning(
            "The traces of commit %s of %s are left to the clean-up: %s",
            write.commit,
            scope,
            error,
            exc_info=not isinstance(error, KtkError),
        )


def read_intents(store: ObjectStore, scope: LogScope) -> list[Intent]:
    """Read the notes of all writers of a scope, dead ones among them.

    Raises a `FormatError` if a note is damaged: the files that it protects are then unknown.
    """
    folder = join_key(scope.folder, "intent")
    intents = []
    for name in store.list_names(folder):
        try:
            key = join_key(folder, name)
            note = parse_json(store.get(key), f"Intent {key}")
            heartbeat = datetime.fromisoformat(note["heartbeat"])
            found = Intent(name.partition(".")[0], note["operation"], heartbeat)
            intents.append(with_field_types(found))
        except ObjectNotFoundError:
            continue  # its writer has just finished
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"Intent {join_key(folder, name)} is damaged: {error!r}") from error
    return intents
