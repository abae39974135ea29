"""Snapshots of datasets that another writer made: plain Kartothek v4, read as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ktk_engine.errors import (
    ForeignWriterError,
    FormatError,
    ObjectNotFoundError,
    UnsupportedFormatError,
)
from ktk_engine.format.common_metadata import (
    columns_without_class,
    large_columns,
    read_common_metadata,
)
from ktk_engine.format.dataset_key import TABLE, common_metadata_key, document_key
from ktk_engine.format.document import DatasetDocument
from ktk_engine.format.label import partition_table
from ktk_engine.format.stamp import BASE_KEY, read_stamp, stamp_is_valid
from ktk_engine.snapshot.snapshot import LARGE, LEFT_OUT, Snapshot, files_table
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.schema import dataset_schema


def verify_document(store: ObjectStore, uuid: str) -> None:
    """Raise a `ForeignWriterError` if a document was edited and still has this library's stamp.

    A missing document passes: the log knows whether this library removed it.
    """
    key = document_key(uuid)
    try:
        data = store.get(key)
    except ObjectNotFoundError:
        return
    if read_stamp(data) is None:
        raise ForeignWriterError(
            f"{key} of {store.url} was just written by another program. Nothing was committed. "
            "Run it again, to build on that."
        )
    if not stamp_is_valid(data):
        raise ForeignWriterError(
            f"{key} of {store.url} was edited: its content does not fit its stamp. Nothing was "
            "written. Restore the file, or remove it with the dataset and rebuild it."
        )


def snapshot_of_document(store: ObjectStore, document: DatasetDocument) -> Snapshot:
    """Describe a dataset by its published Kartothek files.

    Rows, bytes and statistics are unknown here: only the footers of its files have them. Raises an
    `ObjectNotFoundError` without `_common_metadata`, and a `FormatError` if a document or label
    breaks the format's rules.
    """
    published, noted = _published_schema(store, document)
    schema = dataset_schema(published, document.partition_keys)
    labels = list(document.partitions)
    partitions = _partitions(store, document, schema)
    return Snapshot(
        uuid=document.uuid,
        schema=schema,
        partition_keys=document.partition_keys,
        file_table=files_table(labels, list(document.partitions.values()), partitions),
        indices=dict(document.indices),
        metadata=dict(document.metadata),
        properties=noted if document.table == TABLE else {**noted, "table": document.table},
    )


def _published_schema(
    store: ObjectStore, document: DatasetDocument
) -> tuple[pa.Schema, dict[str, Any]]:
    """Read `_common_metadata` and what to record of it; errors name the file and the dataset."""
    key = common_metadata_key(document.uuid, document.table)
    try:
        data = store.get(key)
        schema, left_out = read_common_metadata(data), columns_without_class(data)
    except ObjectNotFoundError as error:
        raise ObjectNotFoundError(
            f"Dataset {document.uuid} in {store.url} has no schema: {key} is missing. Restore the "
            "file from a backup, or rebuild the dataset."
        ) from error
    except FormatError as error:
        raise FormatError(
            f"The schema {key} of dataset {document.uuid} in {store.url} cannot be used: {error}. "
            "Restore the file from a backup, or rebuild the dataset."
        ) from error
    without = [f"{name} ({left_out[name]})" for name in document.partition_keys if name in left_out]
    if without:
        raise UnsupportedFormatError(
            f"Dataset {document.uuid} in {store.url} is partitioned by {', '.join(without)}: it is "
            "not supported here. Write it without such a partition column."
        )
    noted = {LEFT_OUT: left_out, LARGE: large_columns(data)}
    return schema, {key: value for key, value in noted.items() if value}


def _partitions(store: ObjectStore, document: DatasetDocument, schema: pa.Schema) -> pa.Table:
    if not document.partition_keys:
        return pa.table({})
    try:
        labels, keys = list(document.partitions), document.partition_keys
        return partition_table(labels, keys, schema, lenient=True)
    except FormatError as error:
        key = common_metadata_key(document.uuid, document.table)
        raise FormatError(
            f"Dataset {document.uuid} of {store.url}: {error}. Either its document or its schema "
            f"file {key} is wrong."
        ) from error


def has_files_of(document: DatasetDocument, snapshot: Snapshot) -> bool:
    """Whether a document names exactly the files of a snapshot, in its order."""
    keys = snapshot.file_column("key").to_pylist()
    return list(document.partitions.items()) == list(zip(snapshot.labels, keys, strict=True))


def with_document(snapshot: Snapshot, document: DatasetDocument) -> Snapshot:
    """A snapshot with what another program's document of the same files adds.

    Indexes of further columns are taken over; the snapshot's own indexes stay.
    """
    own = snapshot.with_index
    indices = {
        name: key
        for name, key in document.indices.items()
        if name in snapshot.schema.names and name not in own
    }
    return replace(
        snapshot,
        indices={**indices, **snapshot.indices},
        metadata=kept_metadata(snapshot.metadata, document),
    )


def kept_metadata(known: Mapping[str, Any], document: DatasetDocument) -> dict[str, Any]:
    """The metadata of another program's document, completed by what was there before.

    Kartothek's `build_dataset_indices` writes no user metadata, and so loses a cube's
    specification.
    """
    if BASE_KEY in document.metadata:
        return dict(document.metadata)
    return {**known, **document.metadata}
