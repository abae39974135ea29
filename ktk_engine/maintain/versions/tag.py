"""Names a version of a cube or table, or takes a name back, as one commit that changes no rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.errors import (
    CommitConflictError,
    ConsistencyError,
    DatasetNotFoundError,
    VersionGoneError,
)
from ktk_engine.log.chain import read_entries
from ktk_engine.log.change.change_set import unchecked
from ktk_engine.log.state import State, resolve
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.log.version import check_tag, state_at, tags_of, version_of
from ktk_engine.maintain.change_datasets import change_datasets
from ktk_engine.messages import Remedy
from ktk_engine.publish.publish import publish
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.identifier import find_name, names_alike


@dataclass(frozen=True)
class Tagged:
    """The result of naming a version."""

    version: int  # the version that has, or had, the name
    log: int  # version of the log that says so
    warning: str = ""  # for people


def tag_version(
    store: ObjectStore,
    name: str,
    tag: str,
    version: int | str | None = None,
    history: Mapping[str, str] | None = None,
) -> Tagged:
    """Name a version, so that no clean-up takes it while it has the name.

    `version` is a number or another tag; the default is the newest. Raises a `ConfigurationError`
    for an invalid name such as a number, a `ConsistencyError` if another version has the name, and
    a `VersionGoneError` if the version or some of its files are gone.
    """
    state = find_scope(store, name, removed=version is not None)
    if version is None:
        return tag_state(state, tag, history)
    number = version_of(state, version) if isinstance(version, str) else version
    return _tag(state, check_tag(tag), number, history)


def tag_state(state: State, tag: str, history: Mapping[str, str] | None = None) -> Tagged:
    """Name the version that a state has opened; see `tag_version`.

    What another program has changed since the last commit is committed first, so that there is a
    version to name. Raises a `CommitConflictError` if something else was committed meanwhile.
    """
    check_tag(tag)
    newest = resolve(state.store, state.scope)
    if state.head is not None and not any(item.foreign for item in state.datasets.values()):
        return _tag(newest, tag, state.version, history)
    if (newest.version, newest.datasets) != (state.version, state.datasets):
        raise CommitConflictError(
            f"{state.scope.name} was changed since it was opened. Nothing was written. Open it "
            "again."
        )
    if names_alike(tag, tags_of(newest)):
        _refuse_other(newest, tag)
    done = change_datasets(newest, f"adopt {state.scope.name}", (), {"reason": f"to tag it {tag}"})
    return _tag(resolve(state.store, state.scope), tag, done.version, history)


def delete_tag(
    store: ObjectStore, name: str, tag: str, history: Mapping[str, str] | None = None
) -> Tagged:
    """Take a name back; the next clean-up treats its version like others.

    Raises a `DatasetNotFoundError`, a `VersionGoneError` if no version has the name, and a
    `CommitConflictError` if the name was changed meanwhile.
    """
    state = find_scope(store, name, removed=True)
    version = version_of(state, tag)
    spelled = find_name(tag, tags_of(state))
    if spelled is None:
        raise VersionGoneError(
            f"{tag!r} is not a tag of {name}, but a number. Nothing was changed."
        )
    tag = spelled
    reason = f"{tag} names version {version} no longer"
    return _commit(state, tag, None, version, {"reason": reason, **(history or {})})


def _tag(state: State, tag: str, version: int, history: Mapping[str, str] | None) -> Tagged:
    if names_alike(tag, tags_of(state)):
        if tags_of(state).get(tag) == version:
            return Tagged(version, state.version)
        _refuse_other(state, tag)
    _check_complete(state, version)
    reason = f"{tag} names version {version}"
    return _commit(state, tag, version, version, {"reason": reason, **(history or {})})


def _refuse_other(state: State, tag: str) -> None:
    """A name is given once: readers who use it rely on that."""
    name, known = state.scope.name, names_alike(tag, tags_of(state))[0]
    raise ConsistencyError(
        f"Tag {known} of {name} names version {tags_of(state)[known]}. Nothing was written. "
        "Choose another name, or delete this one first: ",
        Remedy("untag", name=name, tag=known),
    )


def _check_complete(state: State, version: int) -> None:
    """Refuse a version of which a clean-up has given up files.

    Snapshots alone do not show it: others may build on them after the data files are gone.
    """
    old = state_at(state, version)
    expired_keys: set[str] = set()
    for entry, _ in read_entries(state.store, state.scope, version, state.version):
        expired_keys.update(entry.deleted)
    gone = frozenset(expired_keys)
    if old.head is None or not old.head.datasets:
        raise DatasetNotFoundError(
            f"{state.scope.name} has nothing at version {version}: there is nothing to tag."
        )
    for uuid, item in old.datasets.items():
        # What another program has put on top of the log belongs to no version yet.
        assert item.entry is not None or item.foreign, "a version of the log has entries"
        if item.entry is None:
            continue
        if gone and old.snapshot(uuid).named_among(gone):
            raise VersionGoneError(
                f"{state.scope} of {state.store.url}: a clean-up has removed files of {uuid} of "
                f"version {version}, so that version can no longer be tagged. Nothing was written."
            )


def _commit(
    state: State, tag: str, target: int | None, version: int, history: Mapping[str, str]
) -> Tagged:
    operation = f"tag {state.scope.name} {tag}"
    with ScopeTransaction(state, operation, history, unchecked, publish) as tagging:
        tagging.tag(tag, target)
        done = tagging.commit()
    return Tagged(version, done.entry.version, done.warning)
