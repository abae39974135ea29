"""How snapshots are stored: one file, and segments of a large table of files.

See docs/design/files-and-commits.md, Snapshots, and docs/design/scale.md.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ktk_engine.errors import FormatError, ObjectNotFoundError, UnsupportedFormatError
from ktk_engine.format.field_types import check_types, with_field_types
from ktk_engine.format.file_digest import DAMAGE, digest_of_json
from ktk_engine.format.parse_json import check_count, parse_json, render_json
from ktk_engine.messages import Message, Remedy
from ktk_engine.snapshot.file_segments import SegmentedFiles, SegmentReader
from ktk_engine.snapshot.index_segment import segment_of_json
from ktk_engine.snapshot.snapshot import (
    FILE_FIELDS,
    PARTITION_PREFIX,
    PROPERTIES,
    Snapshot,
    check_partition_values,
    concat_files,
)
from ktk_engine.snapshot.store_segments import is_segmented, store_segments
from ktk_engine.snapshot.stored_files import FileTable, StoredFiles
from ktk_engine.store.interface import ObjectStore

MAX_FILES = 20_000_000
_ROW_GROUP = 32_768  # a plan of few files decodes few groups
# Formats: whole, building on another (earlier versions wrote it), and with segments.
_WHOLE, _ON_BASE, _SEGMENTED = 1, 2, 3
_METADATA_KEY = b"ktk"


def write_snapshot(
    store: ObjectStore, key: Callable[[int], str], snapshot: Snapshot, *, merge: bool = True
) -> tuple[Snapshot, str, list[str]]:
    """Store a snapshot; returns it as stored, the SHA-256 of its file, and the keys written.

    `key` makes unused keys: for 0 the snapshot's, from 1 on those of segments. Raises an
    `ObjectExistsError` if a key is taken, and a `FormatError` if a partition value cannot be read.
    """
    files, written = snapshot.file_table, [key(0)]
    check_partition_values(_unlisted(snapshot), snapshot.partition_keys)
    if is_segmented(files):
        files, segments = store_segments(
            store, files, snapshot.partition_keys, lambda number: key(number + 1), merge=merge
        )
        written += segments
        rows: pa.Table = files.listed
    else:
        rows = files = snapshot.files
    snapshot = replace(snapshot, file_table=files, next_file=snapshot.next_number)
    table = rows.replace_schema_metadata({_METADATA_KEY: render_json(_document(snapshot))})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", row_group_size=_ROW_GROUP)
    data = sink.getvalue().to_pybytes()
    store.put_if_absent(key(0), data)
    return snapshot, hashlib.sha256(data).hexdigest(), written


def _unlisted(snapshot: Snapshot) -> Snapshot:
    """The snapshot with only the files that no segment has; the others were checked before."""
    files = snapshot.file_table
    return (
        replace(snapshot, file_table=files.added) if isinstance(files, SegmentedFiles) else snapshot
    )


def _document(snapshot: Snapshot) -> dict[str, Any]:
    segmented = isinstance(snapshot.file_table, SegmentedFiles)
    document: dict[str, Any] = {
        "format": _SEGMENTED if segmented else _WHOLE,
        "uuid": snapshot.uuid,
        "schema": _encode_schema(snapshot.schema),
        "partition_keys": snapshot.partition_keys,
        "indices": dict(snapshot.indices),
        "metadata": dict(snapshot.metadata),
        "physical_schemas": [_encode_schema(schema) for schema in snapshot.physical_schemas],
        "properties": dict(snapshot.properties),
        "index_digests": {
            index: snapshot.index_digests[index].as_json()
            for index in snapshot.indices.values()
            if index in snapshot.index_digests
        },
        "next_file": snapshot.next_file,
        "index_segments": {
            name: [item.as_json() for item in segments]
            for name, segments in snapshot.index_segments.items()
        },
    }
    if segmented:
        document["files"] = _encode_schema(snapshot.file_table.schema)
    return document


def read_snapshot(
    store: ObjectStore,
    key: str,
    sha256: str = "",
    known: MutableMapping[str, FileTable] | None = None,
) -> Snapshot:
    """Load and verify a snapshot; segments are read and verified on demand.

    `sha256` is empty if an older version wrote the log entry. Raises an `ObjectNotFoundError`, a
    `FormatError` for damage, and an `UnsupportedFormatError` for a newer format.
    """
    try:
        data = store.get(key)
    except ObjectNotFoundError as error:
        raise ObjectNotFoundError(
            f"Snapshot {key} of {store.url} is missing, but its log entry names it. {_RESTORE}"
        ) from error
    if sha256 and hashlib.sha256(data).hexdigest() != sha256:
        reason = "its content does not fit the digest in its log entry"
        raise FormatError(_damaged(store, key, reason))
    try:
        reader = SegmentReader(store, {} if known is None else known)
        found = _parse_snapshot(reader, data, f"Snapshot {key} of {store.url}")
        # Without a digest anything may be damaged, so check all of it now.
        return found if sha256 else replace(found, file_table=found.files)
    except UnsupportedFormatError:
        raise
    except DAMAGE as error:
        raise FormatError(_damaged(store, key, error)) from error


_RESTORE = "Restore the file from a backup of the store, or rebuild the dataset."


def _damaged(store: ObjectStore, key: str, reason: object) -> str:
    return f"Snapshot {key} of {store.url} is damaged: {reason}. {_RESTORE}"


def _parse_snapshot(reader: SegmentReader, data: bytes, what: str) -> Snapshot:
    stored = StoredFiles(data)
    check_count(stored.num_rows, what, MAX_FILES)
    document: dict[str, Any] = parse_json(stored.metadata[_METADATA_KEY], what)
    files: FileTable
    if document["format"] == _SEGMENTED:
        listed = stored.select(stored.column_names)
        files = SegmentedFiles(listed, _decode_schema(document["files"]), reader)
    elif document["format"] == _ON_BASE:
        files = _on_base(reader, document, StoredFiles(data, FILE_FIELDS))
    elif document["format"] == _WHOLE:
        files = StoredFiles(data, FILE_FIELDS)
    else:
        raise UnsupportedFormatError(
            Message(
                f"{what} has format {document['format']}; this version reads formats up to "
                f"{_SEGMENTED}. ",
                Remedy("upgrade"),
            )
        )
    schema = _decode_schema(document["schema"])
    keys: list[str] = document["partition_keys"]
    values = {PARTITION_PREFIX + name for name in keys}
    if not (values.issubset(files.schema.names) and set(keys).issubset(schema.names)):
        raise ValueError(f"it lacks one of the partition columns {', '.join(keys)}")
    check_types({**dict.fromkeys(PROPERTIES), **document["properties"]}, PROPERTIES)
    snapshot = Snapshot(
        uuid=document["uuid"],
        schema=schema,
        partition_keys=tuple(keys),
        file_table=files,
        indices=document["indices"],
        metadata=document["metadata"],
        physical_schemas=tuple(_decode_schema(text) for text in document["physical_schemas"]),
        properties=document["properties"],
        index_digests={
            index: digest_of_json(content)
            for index, content in document.get("index_digests", {}).items()
        },
        index_segments={
            name: tuple(segment_of_json(content, schema.field(name).type) for content in segments)
            for name, segments in document.get("index_segments", {}).items()
        },
        next_file=document.get("next_file"),
    )
    return with_field_types(snapshot)


def _on_base(reader: SegmentReader, document: Mapping[str, Any], added: StoredFiles) -> pa.Table:
    """The files of a snapshot that stores only changes to a whole one, its base."""
    key, sha256 = document["base"]["key"], document["base"]["sha256"]
    if not sha256:
        raise ValueError("it does not say which base it builds on")
    base = read_snapshot(reader.store, key, sha256)
    if base.uuid != document["uuid"] or not isinstance(base.file_table, StoredFiles):
        raise ValueError(f"it builds on {key}, which is no whole snapshot of its dataset")
    stayed = np.delete(np.arange(base.file_table.num_rows), document["removed"])
    if len(stayed) != base.file_table.num_rows - len(document["removed"]):
        raise ValueError("files are removed twice")
    kept = base.files.take(pa.array(stayed))
    kept = kept.select([name for name in kept.column_names if name in added.column_names])
    files = concat_files([kept, added.select(added.column_names)]).select(added.column_names)
    return files.set_column(0, FILE_FIELDS[0], pa.array(np.arange(files.num_rows)))


def _encode_schema(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode("ascii")


def _decode_schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
