"""Deletes what no retained version needs: first committed as a list, then done.

See docs/design/files-and-commits.md, Clean-up.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from ktk_engine.catalog.find_scope import find_scope, present_scopes
from ktk_engine.cube.dataset_uuid import is_in_cube, split_uuid
from ktk_engine.errors import (
    CommitConflictError,
    DatasetNotFoundError,
    InvalidKeyError,
    KtkError,
    StoreError,
)
from ktk_engine.formatting import counted, size
from ktk_engine.log.garbage import (
    UNFINISHED_LIFETIME,
    Garbage,
    NamedFiles,
    Retention,
    dataset_folders,
    find_garbage,
)
from ktk_engine.log.scope import LogScope, cube_scope, scope_of
from ktk_engine.log.state import resolve
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.publish.publish import publish, publish_head
from ktk_engine.publish.published_forms import owned_by_form
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectInfo, ObjectStore
from ktk_engine.store.key import is_uuid

_ATTEMPTS = 10
_ENTRY_BYTES = 16_384  # of an intent and an entry, in whole pages of a disk


@dataclass(frozen=True)
class Cleaned:
    """The result of a clean-up."""

    garbage: Garbage
    version: int = 0  # of the log that has the list; 0: nothing to list
    warning: str = ""  # why nothing was deleted yet


def _check_unneeded(deleted: frozenset[str], snapshots: Mapping[str, Snapshot]) -> None:
    """Check that no dataset refers to what is about to be deleted, also after a lost slot."""
    for snapshot in snapshots.values():
        lost = snapshot.named_among(deleted)
        if lost:
            raise CommitConflictError(
                f"Another run committed files of {snapshot.uuid} that this clean-up was going "
                f"to delete, for instance {min(lost)}. Nothing was deleted. Run it again."
            )


def scopes_to_clean(store: ObjectStore) -> list[LogScope]:
    """Every cube and table of a store, also cubes with nothing left but folders of datasets."""
    folders = [name.removesuffix("/") for name in store.list_names() if name.endswith("/")]
    left = {scope_of(name) for name in folders if is_uuid(name) and all(split_uuid(name))}
    scopes = left.union(present_scopes(store))
    return sorted(scopes, key=lambda scope: (scope.kind, scope.name))


def scope_to_clean(store: ObjectStore, name: str) -> LogScope:
    """Find a cube or table by its name, even if any program removed it.

    Raises a `DatasetNotFoundError` if nothing of it is left, and a `ConsistencyError` if a cube and
    a table share the name.
    """
    try:
        return find_scope(store, name, removed=True).scope
    except DatasetNotFoundError:
        try:
            scope = cube_scope(name)
        except InvalidKeyError:
            scope = None
        if scope is None or is_in_cube(name) or not dataset_folders(store, scope):
            raise
        return scope


def plan_cleanup(
    store: ObjectStore, scope: LogScope, retention: Retention, named: NamedFiles | None = None
) -> Garbage:
    """Find what a clean-up would delete; nothing is written.

    One `named` for all scopes saves requests; see `find_garbage`. Raises a `ForeignWriterError` if
    another program changed a dataset: its garbage is unknown.
    """
    for left in reversed(range(_ATTEMPTS)):
        before = resolve(store, scope).version
        try:
            return find_garbage(store, scope, retention, owned_by_form, named)
        except KtkError:
            # If the log went on, another clean-up took what was being judged.
            if not left or resolve(store, scope).version == before:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def run_cleanup(
    store: ObjectStore,
    scope: LogScope,
    retention: Retention,
    history: Mapping[str, str] | None = None,
    named: NamedFiles | None = None,
) -> Cleaned:
    """Delete what no retained version of a scope needs.

    What no version can have named goes first, which needs no room on a full disk. Of the rest, the
    list is committed first. A slow writer whose files are on it fails at its commit, and the next
    clean-up finishes one that was killed. Raises a `ForeignWriterError` or a `CommitConflictError`
    before anything is deleted. After a `StoreError` the next clean-up deletes what is left.
    """
    # A writer that was killed or failed may have left its commit unpublished. While a form names
    # files of an old version, that version is not given up.
    warning = publish_head(store, scope).warning
    garbage = plan_cleanup(store, scope, retention, named)
    store.delete([*garbage.unnamed, *(info.key for info in garbage.unfinished)])
    version = 0
    keys = tuple(info.key for info in garbage.objects if info.key not in garbage.unnamed)
    if keys and not warning:
        check = partial(_check_unneeded, frozenset(keys))
        state, said = garbage.state, history or {}
        with (
            _room_for(store, keys),
            ScopeTransaction(state, "cleanup", said, check, publish) as changing,
        ):
            changing.delete(keys)
            done = changing.commit()
            version, warning = done.entry.version, done.warning
            if not warning:  # else a published document may still name deleted files
                _delete_listed(store, keys, version)
    if not warning:
        store.delete([scope.intent_key(commit_id) for commit_id in garbage.intents])
    return Cleaned(garbage, version, warning)


@contextmanager
def _room_for(store: ObjectStore, keys: Collection[str]) -> Iterator[None]:
    """Say how much room the list of what goes needs, if the disk is full."""
    try:
        yield
    except StoreError as error:
        if not _is_full(error):
            raise
        needed = _ENTRY_BYTES + sum(len(json.dumps(key)) + 1 for key in keys)
        raise error.with_message(
            f"The disk of {store.url} is full. Before {counted(len(keys), 'file')} can go, their "
            f"list has to be stored, which needs about {size(needed)}. None of them was deleted. "
            "Free that much elsewhere on the disk, and run the clean-up again."
        ) from error


def _is_full(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__
    return error is not None and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _delete_listed(store: ObjectStore, keys: tuple[str, ...], version: int) -> None:
    try:
        store.delete(keys)
    except StoreError as error:
        raise error.with_message(
            error.message.rstrip("."),
            f". Version {version} of the log lists what goes: run the clean-up again to delete "
            "the rest.",
        ) from error


def find_unfinished(store: ObjectStore) -> tuple[ObjectInfo, ...]:
    """Find the temporary files that killed writers left anywhere in a store."""
    now = store.now()
    return tuple(
        info for info in store.list_unfinished() if now - info.modified > UNFINISHED_LIFETIME
    )


def delete_unfinished(store: ObjectStore, found: tuple[ObjectInfo, ...]) -> None:
    """Delete what `find_unfinished` found."""
    store.delete([info.key for info in found])
