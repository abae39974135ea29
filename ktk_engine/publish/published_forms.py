"""Keeps the published forms of datasets at what is committed: never ahead, never backwards.

See docs/design/files-and-commits.md, Published forms.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Collection, Iterator
from dataclasses import replace

from ktk_engine.cube.dataset_uuid import cube_and_dataset
from ktk_engine.errors import KtkError, ObjectExistsError, PublishError, PublishWarning
from ktk_engine.log.state import State, resolve
from ktk_engine.messages import Message, Remedy, joined
from ktk_engine.publish.delta.delta_form import DELTA
from ktk_engine.publish.form import Form, NextVersion, Present, Wanted
from ktk_engine.publish.iceberg.iceberg_form import ICEBERG
from ktk_engine.snapshot.snapshot import Snapshot

FORMS: tuple[Form, ...] = (DELTA, ICEBERG)
_LOGGER = logging.getLogger(__name__)
_RETRIES = 20


def forms_of(snapshot: Snapshot) -> list[Form]:
    """The forms in which every commit of a dataset is published."""
    return [form for form in FORMS if form.name in snapshot.published_as]


def owned_by_form(uuid: str, key: str) -> bool:
    """Whether a file in a dataset's folder belongs to what is published of it, not to its data."""
    return any(form.owns(uuid, key) for form in FORMS)


def publish_forms(state: State, expired_keys: Collection[str] = ()) -> str:
    """Bring the published forms of a scope up to its head; returns a warning, empty if all are.

    Only datasets whose snapshots are loaded count: a commit has loaded all that it needs. A
    failure, even a bug, is never an error, since the next commit publishes.
    """
    warnings = []
    for uuid, form in _known_forms(state):
        behind = f"{uuid} is committed, but its {form.record} still has an older version: "
        try:
            if not form.is_current(Wanted.of(state, uuid, expired_keys)):
                publish_form(form, state, uuid, expired_keys)
        except KtkError as error:
            _LOGGER.warning("%s is committed, but not published as %s: %s", uuid, form.title, error)
            warnings.append(Message(behind, error.message.rstrip(".")))
        except Exception as error:
            _LOGGER.exception("%s is committed, but could not be published as %s", uuid, form.title)
            again = Remedy.on("publish", *cube_and_dataset(uuid))
            warnings.append(Message(behind, f"{error!r}. To try again: ", again))
    return joined("; ", warnings)


def _known_forms(state: State) -> Iterator[tuple[str, Form]]:
    for uuid, item in state.datasets.items():
        if item.entry is None or not item.is_as_committed:
            continue
        snapshot = state.snapshot_cache.get(item.entry.snapshot)
        for form in forms_of(snapshot) if snapshot is not None else ():
            yield uuid, form


def drop_forms(state: State, removed: Collection[str] = ()) -> State:
    """Delete the published forms of removed datasets; returns the state to publish.

    `removed` are datasets that may have been removed before the head, even if they exist again, or
    that lost a form. If one of them was published again meanwhile, that is repeated.
    """
    known = {*removed, *(state.head.removed if state.head else ())}
    found = set()
    for uuid in sorted(known):
        for form in FORMS:
            if not _is_published(form, state, uuid) and form.delete(state.store, uuid):
                found.add(uuid)
    if not found:
        return state
    newest = replace(resolve(state.store, state.scope), snapshot_cache=state.snapshot_cache)
    for uuid in found & set(newest.datasets):
        newest.snapshot(uuid)
    return newest


def publish_form(form: Form, state: State, uuid: str, expired_keys: Collection[str] = ()) -> int:
    """Bring one form of a dataset up to the head; returns its version, or -1 if it is not visible.

    Raises a `PublishError` if the form cannot express the dataset, whose record then stays, and a
    `StoreError` if the store failed.
    """
    if state.store.is_staged:
        return -1  # staged: not public yet
    for attempt in range(_RETRIES):
        present = form.read(state.store, uuid)
        # A head that is resolved after the record was read is never older than the record.
        if attempt or present.broken or present.published > _version(state, uuid):
            state = replace(resolve(state.store, state.scope), snapshot_cache=state.snapshot_cache)
            if not _is_published(form, state, uuid):
                return -1  # removed meanwhile, or stopped
        item = state.datasets[uuid]
        if item.entry is None or not item.is_as_committed:
            raise PublishError(item.problem or "another program has just changed it")
        wanted = form.next_version(Wanted.of(state, uuid, expired_keys), present)
        if wanted is None:
            return present.version
        try:
            wanted.put()
        except ObjectExistsError:
            state.store.backoff.pause(attempt + 1)
            continue
        begun = present.version < 0
        if begun and not _is_published(form, resolve(state.store, state.scope), uuid):
            form.delete(state.store, uuid)  # publishing was stopped meanwhile
            continue  # the dataset may be published again
        if not _follows(state, uuid, wanted, present):
            wanted.take_back()
            continue
        wanted.settle()
        if wanted.note:
            warnings.warn(f"{uuid}: {wanted.note}", PublishWarning, stacklevel=2)
        return wanted.version
    again = Remedy.on("publish", *cube_and_dataset(uuid))
    raise PublishError(f"its {form.record} keeps changing. Run later: ", again)


def _version(state: State, uuid: str) -> int:
    entry = state.datasets[uuid].entry
    return entry.version if entry else 0


def _follows(state: State, uuid: str, wanted: NextVersion, present: Present) -> bool:
    """Whether a version that was put belongs to the record, which may have been started again.

    After a record that cannot be read, it does while it is of the newest version.
    """
    if present.broken:
        newest = resolve(state.store, state.scope)
        return uuid in newest.datasets and _version(newest, uuid) == _version(state, uuid)
    return present.version < 0 or wanted.follows()


def _is_published(form: Form, state: State, uuid: str) -> bool:
    return uuid in state.datasets and form.name in state.snapshot(uuid).published_as


def check_form(form: Form, wanted: Wanted, present: Present) -> str:
    """How a form of a dataset differs from what is committed; empty if it does not.

    Raises a `PublishError` if the form cannot express what is committed.
    """
    if problem := _behind(form, wanted, present):
        form.check(wanted.store, wanted.snapshot)  # which says why, if the form cannot express it
        return problem
    return form.difference(wanted, present)


def _behind(form: Form, wanted: Wanted, present: Present) -> str:
    """Why a record does not have what is committed; empty if it has."""
    if present.broken or present.version < 0:
        return present.broken or f"it has no {form.record}"
    if present.published != wanted.entry.version:
        ours = f"version {present.published}"
        known = ours if present.published else "nothing that this library published"
        return f"its {form.record} has {known}, and version {wanted.entry.version} is committed"
    return ""
