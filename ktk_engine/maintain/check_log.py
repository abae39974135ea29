"""Checks what decides which files are read: the log, its snapshots, and published documents."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ktk_engine.errors import FormatError, KtkError, ObjectNotFoundError, PublishError
from ktk_engine.format.common_metadata import read_common_metadata, render_common_metadata
from ktk_engine.format.dataset_key import TABLE, common_metadata_key, document_key
from ktk_engine.format.load_document import load_document
from ktk_engine.format.stamp import read_stamp, stamp_is_valid
from ktk_engine.log.chain import Link, read_chain
from ktk_engine.log.foreign import has_files_of
from ktk_engine.log.state import State, resolve
from ktk_engine.maintain.problem import Problem
from ktk_engine.messages import Message, Remedy
from ktk_engine.publish.form import Form, Wanted
from ktk_engine.publish.publish import publishes_documents, wanted_version
from ktk_engine.publish.published_forms import check_form, forms_of
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.snapshot.stored_files import FileTable
from ktk_engine.snapshot.stored_snapshot import read_snapshot
from ktk_engine.store.interface import ObjectStore


def check_log(state: State, deep: bool = False) -> Iterator[Problem]:
    """Check every entry of a log, each against the one that was built on it.

    `deep` also checks the snapshots of history that no clean-up took.
    """
    if state.head is None:
        return
    links = read_chain(state.store, state.scope, 1, state.version, state.head_sha256)
    for link in links:
        if link.problem:
            yield Problem("", link.key, "", "a log entry", "", link.problem)
    if deep:
        yield from _history_problems(state, links)


def _history_problems(state: State, links: list[Link]) -> Iterator[Problem]:
    entries = [link.entry for link in links if link.entry is not None]
    expired_keys = {key for entry in entries for key in entry.deleted}
    current = {item.entry.snapshot for item in state.datasets.values() if item.entry}
    wanted = {
        item.snapshot: (uuid, item.snapshot_sha256)
        for entry in entries
        for uuid, item in entry.datasets.items()
    }
    segments: dict[str, FileTable] = {}
    for key in sorted(wanted.keys() - expired_keys - current):
        uuid, sha256 = wanted[key]
        try:
            snapshot = read_snapshot(state.store, key, sha256, segments)
            if expired_keys.isdisjoint(snapshot.segments):  # else this version is given up as well
                snapshot.verify_segments()
        except KtkError as error:
            dataset = state.scope.dataset_id(uuid)
            yield Problem(dataset, key, "", "a snapshot of history", "", error.message)


def check_published(state: State, uuid: str, snapshot: Snapshot) -> Iterator[Problem]:
    """Compare what other readers see of our dataset with what is committed."""
    item, store = state.datasets[uuid], state.store
    if item.entry is None or not item.is_as_committed:
        return
    if store.is_staged:
        return  # readers are not to see it yet
    if publishes_documents(state):
        yield from _document_problems(state, uuid, snapshot)
    for form in forms_of(snapshot):
        yield from _form_problems(form, state, uuid)


def _document_problems(state: State, uuid: str, snapshot: Snapshot) -> Iterator[Problem]:
    """What Kartothek readers see: behind the log, ahead of it, or something else."""
    assert state.head is not None
    item, dataset, key = state.datasets[uuid], state.scope.dataset_id(uuid), document_key(uuid)
    wanted, found = wanted_version(state.head, uuid), item.stamp.version if item.stamp else 0
    committed = f"version {wanted}"
    if found < wanted:
        there = f"version {found}" if found else "nothing"
        mending = Remedy("delete_garbage", name=state.scope.name)
        behind = Message("Kartothek readers see an older version. To publish it: ", mending)
        yield Problem(dataset, key, "", committed, there, behind)
        return
    if found > wanted:
        reason = "it has a version that the log lacks. Restore both from a backup"
        yield Problem(dataset, key, "", committed, f"version {found}", reason)
        return
    try:
        data = state.store.get(key)
        if not stamp_is_valid(data):
            reason = (
                "its content does not fit its stamp: Kartothek readers may see other files than "
                "were committed. Restore it from a backup"
            )
            yield Problem(dataset, key, "", "what was published", "", reason)
        elif read_stamp(data) != item.stamp:
            return  # replaced meanwhile
        elif not has_files_of(load_document(state.store, uuid), snapshot):
            if state.store.get(key) != data:
                return  # replaced between the two reads
            reason = "Kartothek readers see other files than were committed"
            yield Problem(dataset, key, "", committed, "other files", reason)
    except ObjectNotFoundError:
        return  # removed meanwhile
    except FormatError as error:
        yield Problem(dataset, key, "", "what was published", "", error.message)
    yield from _schema_problems(state.store, dataset, snapshot)


def _form_problems(form: Form, state: State, uuid: str) -> Iterator[Problem]:
    """What readers of a published form see."""
    try:
        reason = check_form(form, Wanted.of(state, uuid), form.read(state.store, uuid))
        said = Message(f"{reason}. To publish it: ", Remedy.on("publish", state.scope.name))
    except PublishError as error:  # it says itself what to do
        reason = f"its {form.record} still has an older version: "
        said = Message(reason, error.message)
    if reason and resolve(state.store, state.scope).version == state.version:
        dataset = state.scope.dataset_id(uuid)
        yield Problem(dataset, form.folder(uuid), "", f"version {state.version}", "", said)


def _schema_problems(store: ObjectStore, dataset: str, snapshot: Snapshot) -> Iterator[Problem]:
    table = str(snapshot.properties.get("table", TABLE))
    key = common_metadata_key(snapshot.uuid, table)
    wanted = render_common_metadata(snapshot.schema, snapshot.partition_keys)
    try:
        data = store.get(key)
        if data == wanted:
            return
        found, committed = read_common_metadata(data), read_common_metadata(wanted)
    except ObjectNotFoundError:
        yield Problem(dataset, key, "", "a file", "none", "the file is missing")
        return
    except KtkError as error:
        yield Problem(dataset, key, "", "the published schema", "", error.message)
        return
    if _types(found) != _types(committed):
        reason = "the published schema is not the committed one"
        yield Problem(dataset, key, "", str(_types(committed)), str(_types(found)), reason)


def _types(schema: pa.Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}
