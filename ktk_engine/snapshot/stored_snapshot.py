"""How snapshots are stored: one file, and segments of a large table of files.

See docs/design/files-and-commits.md, Snapshots, and docs/design/scale.md.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ktk_engine.errors import FormatError, ObjectNotFoundError, UnsupportedFormatError
from ktk_engine.format.field_types import check_types, with_field_types
from ktk_engine.format.file_digest import DAMAGE, digest_of_json
from ktk_engine.format.own_format import check_format, others_of, with_format
from ktk_engine.format.parse_json import check_count, parse_json, render_json
from ktk_engine.snapshot.file_segments import SegmentedFiles, SegmentReader
from ktk_engine.snapshot.index_segment import segment_of_json
from ktk_engine.snapshot.snapshot import (
    FILE_FIELDS,
    PARTITION_PREFIX,
    PROPERTIES,
    STATISTICS,
    Snapshot,
    check_partition_values,
)
from ktk_engine.snapshot.store_segments import is_segmented, store_segments
from ktk_engine.snapshot.stored_files import FileTable, StoredFiles
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.type_class import class_problem, foreign_part

MAX_FILES = 20_000_000
_ROW_GROUP = 32_768  # a plan of few files decodes few groups
_NAMES = frozenset(
    {
        *("uuid", "schema", "partition_keys", "indices", "metadata", "physical_schemas"),
        *("properties", "index_digests", "next_file", "index_segments", "files"),
    }
)
_METADATA_KEY = b"ktk"
_REMEMBERED_SCHEMAS = 256


def write_snapshot(
    store: ObjectStore, key: Callable[[int], str], snapshot: Snapshot, *, compact: bool = True
) -> tuple[Snapshot, str, list[str]]:
    """Store a snapshot; returns it as stored, the SHA-256 of its file, and the keys written.

    `key` makes unused keys: for 0 the snapshot's, from 1 on those of segments. Raises an
    `ObjectExistsError` if a key is taken, and a `FormatError` if a partition value cannot be read.
    """
    files, written = snapshot.file_table, [key(0)]
    check_partition_values(_unlisted(snapshot), snapshot.partition_keys)
    if is_segmented(files):
        files, segments = store_segments(
            store, files, snapshot.partition_keys, lambda number: key(number + 1), compact=compact
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
    document: dict[str, Any] = {
        **snapshot.others,
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
    if isinstance(snapshot.file_table, SegmentedFiles):
        document["files"] = _encode_schema(snapshot.file_table.schema)
    return with_format(document)


def read_snapshot(
    store: ObjectStore,
    key: str,
    sha256: str = "",
    known: MutableMapping[str, FileTable] | None = None,
) -> Snapshot:
    """Load and verify a snapshot; segments are read and verified on demand.

    `sha256` is what its log entry says. Raises an `ObjectNotFoundError`, a `FormatError` for
    damage, and an `UnsupportedFormatError` for an unknown format.
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
    stored = StoredFiles(data, what)
    check_count(stored.num_rows, what, MAX_FILES)
    document: dict[str, Any] = parse_json(stored.metadata[_METADATA_KEY], what)
    files: FileTable
    check_format(document, what)
    if "files" in document:
        listed = stored.select(stored.column_names)
        files = SegmentedFiles(listed, _decode_schema(document["files"]), reader)
    else:
        stored.complete(FILE_FIELDS, STATISTICS)
        files = stored
    schema = _readable_schema(document["schema"])
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
            index: digest_of_json(content) for index, content in document["index_digests"].items()
        },
        index_segments={
            name: tuple(segment_of_json(content, schema.field(name).type) for content in segments)
            for name, segments in document["index_segments"].items()
        },
        next_file=document["next_file"],
        others=others_of(document, _NAMES),
    )
    return with_field_types(snapshot)


def _encode_schema(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode("ascii")


# Nearly every read of a relation meets the schemas of the read before.
@lru_cache(_REMEMBERED_SCHEMAS)
def _readable_schema(text: str) -> pa.Schema:
    """Decode a schema; raises a ValueError if one of its columns cannot be read."""
    schema = _decode_schema(text)
    for field in schema:
        if problem := class_problem(field.type) or foreign_part(field):
            raise ValueError(f"its column {field.name} cannot be read: {problem}")
    return schema


@lru_cache(_REMEMBERED_SCHEMAS)
def _decode_schema(text: str) -> pa.Schema:
    """Decode a schema; raises a ValueError if a name or a time zone in it is not UTF-8."""
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
    for field in schema:
        foreign_part(field)
    return schema
