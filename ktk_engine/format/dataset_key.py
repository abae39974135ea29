"""Keys of the objects that make up a dataset.

See docs/design/kartothek-format.md, Keys.
"""

from __future__ import annotations

from datetime import UTC, datetime

from ktk_engine.format.percent_encoding import quote
from ktk_engine.store.key import join_key, validate_uuid

DOCUMENT_SUFFIX = ".by-dataset-metadata.json"
MSGPACK_SUFFIX = ".by-dataset-metadata.msgpack.zstd"
INDEX_SUFFIX = ".by-dataset-index.parquet"
COMMON_METADATA = "_common_metadata"
DATA_SUFFIX = ".parquet"
TABLE = "table"
INDICES = "indices"


def document_key(uuid: str) -> str:
    """Key of a dataset's JSON document, which we write: `<uuid>.by-dataset-metadata.json`.

    Raises an `InvalidKeyError` if the uuid is invalid or too long.
    """
    return join_key(validate_uuid(uuid) + DOCUMENT_SUFFIX)


def msgpack_document_key(uuid: str) -> str:
    """Key of a dataset's msgpack document, which we only read."""
    return join_key(validate_uuid(uuid) + MSGPACK_SUFFIX)


def data_key(uuid: str, label: str, table: str = TABLE) -> str:
    """Key of a data file, `<uuid>/<table>/<label>.parquet`; the label is percent-encoded.

    Only old datasets have tables of other names. Raises an `InvalidKeyError` if a segment is too
    long, for example an encoded partition value of more than 255 bytes.
    """
    return join_key(validate_uuid(uuid), table, label + DATA_SUFFIX)


def common_metadata_key(uuid: str, table: str = TABLE) -> str:
    """Key of a dataset's published schema, `<uuid>/<table>/_common_metadata`."""
    return join_key(validate_uuid(uuid), table, COMMON_METADATA)


def published_index_key(uuid: str, column: str, commit_id: str) -> str:
    """Key of the index file for other programs, of an index that is stored as segments.

    `commit_id` is the commit of the dataset's entry in the log.
    """
    return join_key(
        validate_uuid(uuid), INDICES, quote(column), f"published-{commit_id}{INDEX_SUFFIX}"
    )


def index_key(uuid: str, column: str, timestamp: datetime, commit_id: str) -> str:
    """Key of a new index file, with the commit, so that two commits never share one.

    `<uuid>/indices/<column>/<timestamp>-<commit>.by-dataset-index.parquet`, percent-encoded. Aware
    timestamps become UTC.
    """
    if timestamp.tzinfo is not None:
        timestamp = timestamp.astimezone(UTC).replace(tzinfo=None)
    name = f"{quote(timestamp.isoformat())}-{commit_id}{INDEX_SUFFIX}"
    return join_key(validate_uuid(uuid), INDICES, quote(column), name)
