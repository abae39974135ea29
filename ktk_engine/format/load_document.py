"""Finding and loading the documents of a store."""

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

    Args:
        store: the store.
        uuid: the dataset's uuid.

    Returns:
        The document. Where it does not list its partitions, they were found by listing.

    Raises:
        DatasetNotFoundError: there is no document.
        FormatError: the document breaks the format's rules, see `parse_document`.
        StoreError: the store could not be read.
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
    """Read a dataset's document: the JSON one, else the msgpack one, as Kartothek does.

    Returns:
        Its key and content.

    Raises:
        ObjectNotFoundError: there is neither.
        FormatError: a folder lies in its place, so that nobody can tell.
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
    """Give all files that a document names, wherever they lie; also of several tables.

    Args:
        key: the document's key, which tells its encoding.
        data: its content.

    Raises:
        FormatError: it cannot be parsed, or is no document.
        UnsupportedFormatError: it is of a later version, which may name files elsewhere in it.
    """
    what = f"the document {key}"
    parsed = parse_msgpack(data, what) if key.endswith(MSGPACK_SUFFIX) else parse_json(data, what)
    if not isinstance(parsed, dict):
        raise FormatError(f"{what} is no map of names to values")
    version = parsed.get("dataset_metadata_version")
    if type(version) is not int or version > FORMAT_VERSION:
        raise UnsupportedFormatError(f"{what} has metadata version {version!r}")
    parts = (parsed.get("partitions"), parsed.get("indices"))
    return frozenset(text for part in parts for text in _texts(part))


def _texts(content: object) -> Iterator[str]:
    """All texts in parsed content, but for the keys of maps."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict | list):
        for item in content.values() if isinstance(content, dict) else content:
            yield from _texts(item)


def list_documents(store: ObjectStore, prefix: str = "") -> list[str]:
    """List the datasets of a store, by one shallow listing.

    Args:
        store: the store.
        prefix: the start of the wanted uuids.

    Returns:
        The uuids, sorted. Documents whose names hold no valid uuid are not datasets.

    Raises:
        StoreError: the store could not be listed.
    """
    return [name for name in document_names(store, prefix) if is_uuid(name)]


def document_names(store: ObjectStore, prefix: str = "") -> list[str]:
    """As `list_documents`, but with names that hold no valid uuid: what they name is in use too."""
    uuids = {
        name.removesuffix("/").removesuffix(suffix)
        for name in store.list_names("", prefix)
        for suffix in (DOCUMENT_SUFFIX, MSGPACK_SUFFIX)
        if name.removesuffix("/").endswith(suffix)  # a folder there is no missing document
    }
    return sorted(uuid for uuid in uuids if uuid.startswith(prefix))


def _with_table(store: ObjectStore, document: DatasetDocument) -> DatasetDocument:
    """Find the table of a dataset without files: the folder that has a schema."""
    folders = [name.rstrip("/") for name in store.list_names(document.uuid) if name.endswith("/")]
    tables = [
        table for table in folders if store.exists(f"{document.uuid}/{table}/{COMMON_METADATA}")
    ]
    return replace(document, table=only_table(document.uuid, tables))
