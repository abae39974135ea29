"""Finds and loads the documents of a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from ktk_engine.errors import (
    DatasetNotFoundError,
    FormatError,
    ObjectNotFoundError,
    UnsupportedFormatError,
)
from ktk_engine.format.dataset_key import (
    COMMON_METADATA,
    DOCUMENT_SUFFIX,
    MSGPACK_SUFFIX,
    document_key,
    msgpack_document_key,
)
from ktk_engine.format.document import (
    FORMAT_VERSION,
    DatasetDocument,
    document_of,
    only_table,
    parse_document,
)
from ktk_engine.format.parse_json import parse_json
from ktk_engine.format.parse_msgpack import parse_msgpack
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import is_uuid


def load_document(store: ObjectStore, uuid: str) -> DatasetDocument:
    """Load a dataset's document: the JSON one, else the msgpack one, as Kartothek does.

    Raises a `DatasetNotFoundError` if there is none, and what `parse_document` raises.
    """

    def list_keys() -> list[str]:
        return [info.key for info in store.list(f"{uuid}/")]

    try:
        key, data = document_bytes(store, uuid)
    except ObjectNotFoundError as error:
        raise DatasetNotFoundError(f"there is no dataset {uuid!r} in {store.url}") from error
    if key == document_key(uuid):
        document = parse_document(uuid, data, list_keys)
    else:
        content = parse_msgpack(data, f"the document {key} of dataset {uuid!r}")
        document = document_of(uuid, content, list_keys)
    return document if document.partitions else _with_table(store, document)


def document_bytes(store: ObjectStore, uuid: str) -> tuple[str, bytes]:
    """Read a dataset's document and give its key and content; JSON first, as Kartothek does.

    Raises an `ObjectNotFoundError` if there is none, and a `FormatError` if a folder has its name.
    """
    keys = (document_key(uuid), msgpack_document_key(uuid))
    for key in keys:
        with suppress(ObjectNotFoundError):
            return key, store.get(key)
    for key in keys:
        if f"{key}/" in store.list_names("", key):
            raise FormatError(f"{key} is a folder")
    raise ObjectNotFoundError(f"there is no document of {uuid!r} in {store.url}")


def named_keys(key: str, data: bytes) -> frozenset[str]:
    """All files that a document names, also outside its dataset and in several tables.

    Raises an `UnsupportedFormatError` for a later version, which may name files in other places.
    """
    what = f"the document {key}"
    parsed = parse_msgpack(data, what) if key.endswith(MSGPACK_SUFFIX) else parse_json(data, what)
    if not isinstance(parsed, dict):
        raise FormatError(f"{what} is not a map of names to values")
    version = parsed.get("dataset_metadata_version")
    if type(version) is not int or version > FORMAT_VERSION:
        raise UnsupportedFormatError(f"{what} has metadata version {version!r}")
    parts = (parsed.get("partitions"), parsed.get("indices"))
    return frozenset(text for part in parts for text in _texts(part))


def _texts(content: object) -> Iterator[str]:
    """All texts in parsed content except for keys of maps."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict | list):
        for item in content.values() if isinstance(content, dict) else content:
            yield from _texts(item)


def list_documents(store: ObjectStore, prefix: str = "") -> list[str]:
    """List the sorted uuids of datasets whose names start with a prefix, by one shallow listing."""
    return [name for name in document_names(store, prefix) if is_uuid(name)]


def document_names(store: ObjectStore, prefix: str = "") -> list[str]:
    """Like `list_documents`, but includes invalid uuids, whose files are in use too."""
    uuids = {
        name.removesuffix("/").removesuffix(suffix)
        for name in store.list_names("", prefix)
        for suffix in (DOCUMENT_SUFFIX, MSGPACK_SUFFIX)
        if name.removesuffix("/").endswith(suffix)  # a folder there is damage, not absence
    }
    return sorted(uuid for uuid in uuids if uuid.startswith(prefix))


def _with_table(store: ObjectStore, document: DatasetDocument) -> DatasetDocument:
    """Find the table of a dataset without files: the folder that has a schema."""
    folders = [name.rstrip("/") for name in store.list_names(document.uuid) if name.endswith("/")]
    tables = [
        table for table in folders if store.exists(f"{document.uuid}/{table}/{COMMON_METADATA}")
    ]
    return replace(document, table=only_table(document.uuid, tables))
