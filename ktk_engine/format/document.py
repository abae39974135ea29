"""The metadata document of a dataset: which files it has.

See docs/design/kartothek-format.md, Document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.errors import FormatError, InvalidKeyError, UnsupportedFormatError
from ktk_engine.format.dataset_key import (
    COMMON_METADATA,
    DATA_SUFFIX,
    INDEX_SUFFIX,
    TABLE,
    document_key,
)
from ktk_engine.format.label import split_label
from ktk_engine.format.parse_json import parse_json
from ktk_engine.format.stamp import BASE_KEY, STAMP_KEY, Stamp, add_stamp, digest, stamp_of
from ktk_engine.store.key import inside, validate_key, validate_uuid

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

FORMAT_VERSION = 4

_SLASHES = re.compile("/{2,}")
_ROWS = 8192  # fits into the processor's cache


@dataclass(frozen=True)
class DatasetDocument:
    """A dataset's document with one table."""

    uuid: str
    partition_keys: tuple[str, ...]  # the partition columns, in the order of the folders
    # label -> key of its data file; in order, as the last file wins for a cell
    partitions: Mapping[str, str]
    # indexed column -> key of its index file
    indices: Mapping[str, str] = field(default_factory=dict)
    # of users and programs, including `creation_time` and `ktk_cube_*`
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    # column -> text of a value -> labels: small indexes that old writers put into the document
    embedded_indices: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    table: str = TABLE  # only old datasets have another one
    stamp: Stamp | None = None  # which of our commits published it
    # False if its files were found by listing
    lists_files: bool = field(default=True, compare=False)


def parse_document(
    uuid: str, data: bytes, list_keys: Callable[[], Iterable[str]] | None = None
) -> DatasetDocument:
    """Parse a JSON document.

    `list_keys` lists the dataset's folder; it is called only if the document does not list its
    partitions (implicit partitions). Unknown keys are dropped, and so are entries without files.
    Raises a `FormatError` if the document is damaged, and an `UnsupportedFormatError` if it is of
    another version or dataset, has several tables, or names a key outside its dataset.
    """
    content = parse_json(data, f"the document {document_key(uuid)} of dataset {uuid!r}")
    return document_of(uuid, content, list_keys)


def document_of(
    uuid: str, content: object, list_keys: Callable[[], Iterable[str]] | None = None
) -> DatasetDocument:
    """Make a document from parsed content of either encoding; see `parse_document`."""
    validate_uuid(uuid)
    top = _mapping(uuid, "document", content)
    version = top.get("dataset_metadata_version")
    if version != FORMAT_VERSION:
        raise UnsupportedFormatError(
            f"dataset {uuid!r} has metadata version {version!r}; only version "
            f"{FORMAT_VERSION} is supported"
        )
    named = top.get("dataset_uuid")
    if named != uuid:
        kind = UnsupportedFormatError if isinstance(named, str) else FormatError
        raise kind(
            f"the document of dataset {uuid!r} says that it belongs to {named!r}; a renamed or "
            "copied file is not a dataset"
        )
    try:
        return _document(uuid, top, list_keys)
    except InvalidKeyError as error:
        said = f"the document of dataset {uuid!r} is not safe: {error}"
        raise UnsupportedFormatError(said) from error


def render_document(document: DatasetDocument) -> bytes:
    """Render a document in ASCII as Kartothek 5.3 does, byte for byte, after our stamp if any."""
    table = document.table
    partitions = {label: {"files": {table: key}} for label, key in document.partitions.items()}
    body = b"".join(_parts(document, [json.dumps(partitions).encode()]))
    return body if document.stamp is None else add_stamp(document.stamp, [body])


def render_stamped(
    document: DatasetDocument, partitions: Sequence[bytes], version: int, commit_id: str
) -> bytes:
    """Render a document as published by a commit, with a stamp and `metadata.ktk_base`.

    `partitions` comes from `render_partitions`; the document's own stamp and partitions are
    ignored.
    """
    metadata = {**document.metadata, BASE_KEY: f"{version}:{commit_id}"}
    parts = _parts(replace(document, metadata=metadata), partitions)
    return add_stamp(Stamp(version, commit_id, digest(*parts)), parts)


def render_partitions(labels: pa.ChunkedArray, keys: pa.ChunkedArray, table: str) -> list[bytes]:
    """Render the `partitions` of a document as parts of a JSON text, byte for byte as Python does.

    Labels are distinct and in order; keys are those of their data files.
    """
    rows = pa.table({"label": labels, "key": keys})
    # Each batch starts with a comma; the first one is removed.
    parts = [_render(batch, json.dumps(table)) for batch in rows.to_batches(_ROWS) if len(batch)]
    if parts:
        parts[0] = parts[0][2:]
    return [b"{", *parts, b"}"]


def _render(files: pa.RecordBatch, table: str) -> bytes:
    label, key = files["label"], files["key"]
    if not (_is_plain(label) and _is_plain(key)):
        return b"".join(_render_escaped(files, table))
    between = f'": {{"files": {{{table}: "'
    return _characters(pc.binary_join_element_wise(', "', label, between, key, '"}}', "")).tobytes()


def _render_escaped(files: pa.RecordBatch, table: str) -> Iterator[bytes]:
    for label, key in zip(files["label"].to_pylist(), files["key"].to_pylist(), strict=True):
        yield f', {json.dumps(label)}: {{"files": {{{table}: {json.dumps(key)}}}}}'.encode()


def _is_plain(texts: pa.StringArray) -> bool:
    r"""Whether texts need no escapes in JSON: printable ASCII without `"` and `\`."""
    signs = _characters(texts)
    printable = signs - np.uint8(0x20) <= 0x5E  # smaller ones wrap around
    return bool((printable & (signs != 0x22) & (signs != 0x5C)).all())


def _characters(texts: pa.StringArray) -> np.ndarray:
    """The concatenated bytes of texts."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]


def _parts(document: DatasetDocument, partitions: Sequence[bytes]) -> list[bytes]:
    """The text of a document without a stamp, in parts."""
    indices: dict[str, Any] = {**document.indices, **document.embedded_indices}
    content = {
        "dataset_metadata_version": FORMAT_VERSION,
        "dataset_uuid": document.uuid,
        **({"indices": indices} if indices else {}),
        **({"metadata": dict(document.metadata)} if document.metadata else {}),
        "partitions": None,
    }
    before = json.dumps(content).encode().removesuffix(b"null}")
    after = f', "partition_keys": {json.dumps(document.partition_keys)}}}'.encode()
    return [before, *partitions, after]


def _document(
    uuid: str, top: dict[str, Any], list_keys: Callable[[], Iterable[str]] | None
) -> DatasetDocument:
    if top.get("partitions") is None:
        table, partitions = _implicit_partitions(uuid, list_keys)
    else:
        table, partitions = _explicit_partitions(uuid, top["partitions"])
    indices = _mapping(uuid, "indices", top.get("indices", {}))
    files = {name: key for name, key in indices.items() if isinstance(key, str)}
    for key in files.values():
        _validate_index_key(uuid, key)
    stamp = top.get(STAMP_KEY)
    return DatasetDocument(
        uuid=uuid,
        partition_keys=_partition_keys(uuid, top.get("partition_keys"), partitions),
        partitions=partitions,
        indices=files,
        metadata=_mapping(uuid, "metadata", top.get("metadata", {})),
        embedded_indices={
            name: _embedded_index(uuid, name, index)
            for name, index in indices.items()
            if name not in files
        },
        table=table,
        stamp=None if stamp is None else stamp_of(stamp),
        lists_files=top.get("partitions") is not None,
    )


def _explicit_partitions(uuid: str, content: object) -> tuple[str, dict[str, str]]:
    entries = _mapping(uuid, "partitions", content)
    try:
        files = {label: entry["files"] for label, entry in entries.items() if entry["files"]}
        tables = sorted({table for names in files.values() for table in names})
    except (KeyError, TypeError) as error:
        raise FormatError(f"a partition of dataset {uuid!r} has no map of files") from error
    table = only_table(uuid, tables)
    partitions = {label: names[table] for label, names in files.items()}
    for label, key in partitions.items():
        if not isinstance(key, str):
            raise FormatError(f"the file of partition {label!r} of dataset {uuid!r} is not a key")
        partitions[label] = _data_key(uuid, key)
    return table, partitions


def _data_key(uuid: str, key: str) -> str:
    # Kartothek's value `x/` makes the folder `p=x//`, which local disks read as `p=x/`. The
    # label keeps both slashes, so that the value is not lost.
    return inside(_SLASHES.sub("/", key) if "//" in key else key, uuid)


def only_table(uuid: str, tables: list[str]) -> str:
    """The name of a dataset's only table, `table` if none is known.

    Raises an `UnsupportedFormatError` if there are several, or if the name is unfit for a path.
    """
    if len(tables) > 1:
        raise UnsupportedFormatError(
            f"dataset {uuid!r} has several tables ({', '.join(tables)}); only datasets with one "
            "table are supported. Copy each table to a dataset of its own"
        )
    table = tables[0] if tables else TABLE
    if "/" in validate_key(table):
        said = f"dataset {uuid!r} has a table with the invalid name {table!r}"
        raise UnsupportedFormatError(said)
    return table


def _implicit_partitions(
    uuid: str, list_keys: Callable[[], Iterable[str]] | None
) -> tuple[str, dict[str, str]]:
    """Find the files of a dataset whose document does not list them."""
    if list_keys is None:
        raise FormatError(f"the document of dataset {uuid!r} does not list its partitions")
    paths = [key.removeprefix(f"{uuid}/").partition("/") for key in list_keys()]
    paths = [(table, slash, path) for table, slash, path in paths if table != "indices" and path]
    files = [(table, path) for table, _, path in paths if path.endswith(DATA_SUFFIX)]
    schemas = [table for table, _, path in paths if path == COMMON_METADATA]
    if len({path.count("/") for _, path in files}) > 1:
        raise UnsupportedFormatError(
            f"the files of dataset {uuid!r} are at different depths, and its document does not "
            "list them: which of them belong to it is unknown"
        )
    table = only_table(uuid, sorted({*(name for name, _ in files), *schemas}))
    return table, {
        path.removesuffix(DATA_SUFFIX): f"{uuid}/{table}/{path}" for _, path in sorted(files)
    }


def _partition_keys(uuid: str, content: object, partitions: dict[str, str]) -> tuple[str, ...]:
    if content is None:
        # In documents of old writers, the first label names the columns.
        pairs, _ = split_label(next(iter(partitions), ""))
        return tuple(name for name, _ in pairs)
    if not isinstance(content, list) or not all(isinstance(name, str) for name in content):
        raise FormatError(f"the partition_keys of dataset {uuid!r} are not a list of names")
    return tuple(content)


def _validate_index_key(uuid: str, key: str) -> None:
    # Old writers put `<uuid>.<column>.by-dataset-index.parquet` next to the document.
    legacy = key.startswith(f"{uuid}.") and key.endswith(INDEX_SUFFIX) and "/" not in key
    if legacy:
        validate_key(key)
    else:
        inside(key, uuid)


def _embedded_index(uuid: str, column: str, content: object) -> dict[str, tuple[str, ...]]:
    index = _mapping(uuid, f"index of {column!r}", content)
    for labels in index.values():
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise FormatError(f"the index of {column!r} of dataset {uuid!r} has no lists of labels")
    return {value: tuple(labels) for value, labels in index.items()}


def _mapping(uuid: str, what: str, content: object) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise FormatError(f"dataset {uuid!r}: the {what} is not a map but {type(content).__name__}")
    return content
