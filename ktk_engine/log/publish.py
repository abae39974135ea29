"""Publishes the head as plain Kartothek files, which any old reader understands (commit.md 5)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ktk_engine.errors import (
    ForeignWriterError,
    KtkError,
    ObjectExistsError,
    ObjectNotFoundError,
    TokenMismatchError,
)
from ktk_engine.format.common_metadata import render_common_metadata
from ktk_engine.format.dataset_key import TABLE, common_metadata_key, document_key
from ktk_engine.format.document import DatasetDocument, render_document, with_stamp
from ktk_engine.format.stamp import read_stamp, stamp_is_valid
from ktk_engine.log.entry import DatasetEntry, digest
from ktk_engine.log.scope import Scope
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.log.state import State, resolve
from ktk_engine.store.interface import ObjectStore

_LOGGER = logging.getLogger(__name__)
_RETRIES = 10
CUBE_KEYS = (
    "ktk_cube_dimension_columns",
    "ktk_cube_partition_columns",
    "ktk_cube_suppress_index_on",
)


def publish(store: ObjectStore, scope: Scope) -> str:
    """Bring the published documents of a scope up to its head.

    Enrichments come first and the seed dataset last, so that an old reader never meets a seed
    whose enrichments it cannot see. A cube without a seed dataset publishes nothing.

    Args:
        store: where the scope lives.
        scope: what was committed to.

    Returns:
        A warning, empty if all is published. A failure here is never an error: the commit
        stands, and whoever comes next publishes it.
    """
    try:
        state = resolve(store, scope)
        for uuid in state.unpublished_removals:
            store.delete([document_key(uuid)])
        for uuid in _order(state):
            _publish_dataset(state, uuid)
    except KtkError as error:
        _LOGGER.warning("%s is committed, but not published yet: %s", scope, error)
        return f"committed, but not published for Kartothek readers yet: {error}"
    return ""


def verify_document(store: ObjectStore, uuid: str) -> None:
    """Refuse to build on a document that was edited under our stamp.

    Raises:
        ForeignWriterError: its content does not have the digest that the stamp names.
    """
    key = document_key(uuid)
    if not stamp_is_valid(store.get(key)):
        raise ForeignWriterError(
            f"{key} of {store.url} was edited: its content does not fit its stamp. Nothing was "
            "written. Restore the file, or remove it with the dataset and build that anew."
        )


def _order(state: State) -> list[str]:
    """The datasets to publish, the seed dataset last."""
    if state.head is None:
        return []
    entries = state.head.datasets
    if state.scope.kind == "cube" and not any(e.role == "seed" for e in entries.values()):
        return []
    return sorted(entries, key=lambda uuid: (entries[uuid].role == "seed", uuid))


def _publish_dataset(state: State, uuid: str) -> None:
    """Replace one dataset's document, unless it says the same or something newer already."""
    assert state.head is not None
    entry = state.head.datasets[uuid]
    stamp = state.datasets[uuid].stamp
    if stamp is not None and stamp.version >= _wanted_version(state, entry):
        return
    snapshot = state.snapshot(uuid)
    schema = render_common_metadata(snapshot.schema, snapshot.partition_keys)
    table = str(snapshot.properties.get("table", TABLE))
    state.store.put(common_metadata_key(uuid, table), schema)
    document = with_stamp(
        _document(snapshot, _cube_metadata(state), entry),
        _wanted_version(state, entry),
        entry.commit,
    )
    _replace_document(state, uuid, render_document(document))


def _wanted_version(state: State, entry: DatasetEntry) -> int:
    """The version to stamp: the dataset's own, or that of the cube's specification if later."""
    assert state.head is not None
    return max([entry.version, *(e.specified for e in state.head.datasets.values())])


def _replace_document(state: State, uuid: str, data: bytes) -> None:
    """Compare and swap, never backwards, never over another program's document."""
    assert state.head is not None
    key = document_key(uuid)
    for _ in range(_RETRIES):
        try:
            current, token = state.store.get_with_token(key)
        except ObjectNotFoundError:
            try:
                state.store.put_if_absent(key, data)
                return
            except ObjectExistsError:
                continue
        stamp = read_stamp(current)
        if stamp is not None and stamp.version > state.head.version:
            return
        if stamp is None and digest(current) != state.head.datasets[uuid].adopted:
            raise ForeignWriterError(f"{key} was just written by another program")
        try:
            state.store.replace(key, data, token)
            return
        except TokenMismatchError:
            continue
    raise ForeignWriterError(f"{key} keeps changing")


def _cube_metadata(state: State) -> dict[str, Any]:
    """The specification as the seed dataset has it; every document repeats it."""
    assert state.head is not None
    for uuid, entry in state.head.datasets.items():
        if entry.role == "seed":
            metadata = state.snapshot(uuid).metadata
            return {key: metadata[key] for key in CUBE_KEYS if key in metadata}
    return {}


def _document(
    snapshot: Snapshot, cube_metadata: Mapping[str, Any], entry: DatasetEntry
) -> DatasetDocument:
    metadata = {**snapshot.metadata, **cube_metadata}
    if entry.role != "table":
        metadata["ktk_cube_is_seed"] = entry.role == "seed"
    return DatasetDocument(
        uuid=snapshot.uuid,
        partition_keys=snapshot.partition_keys,
        partitions=dict(zip(snapshot.labels, snapshot.files["key"].to_pylist(), strict=True)),
        indices=dict(snapshot.indices),
        metadata=metadata,
        table=str(snapshot.properties.get("table", TABLE)),
    )
