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
DELTA_LOG = "_delta_log"
ICEBERG_METADATA = "metadata"


def document_key(uuid: str) -> str:
    """Key of a dataset's document, as we write it.

    Args:
        uuid: the dataset's uuid.

    Returns:
        `<uuid>.by-dataset-metadata.json`.

    Raises:
        InvalidKeyError: the uuid is invalid or too long.
    """
    return join_key(validate_uuid(uuid) + DOCUMENT_SUFFIX)


def msgpack_document_key(uuid: str) -> str:
    """Key of a dataset's document in Kartothek's other encoding, which we only read.

    Args:
        uuid: the dataset's uuid.

    Returns:
        `<uuid>.by-dataset-metadata.msgpack.zstd`.

    Raises:
        InvalidKeyError: the uuid is invalid or too long.
    """
    return join_key(validate_uuid(uuid) + MSGPACK_SUFFIX)


def data_key(uuid: str, label: str, table: str = TABLE) -> str:
    """Key of a data file.

    Args:
        uuid: the dataset's uuid.
        label: the partition's label, percent-encoded: `country=DE/<base label>`.
        table: name of the table; only old datasets have another one.

    Returns:
        `<uuid>/<table>/<label>.parquet`.

    Raises:
        InvalidKeyError: the result is not a valid key, for example because a partition value
            has more than 255 bytes when encoded.
    """
    return join_key(validate_uuid(uuid), table, label + DATA_SUFFIX)


def common_metadata_key(uuid: str, table: str = TABLE) -> str:
    """Key of a dataset's published schema.

    Args:
        uuid: the dataset's uuid.
        table: name of the table; only old datasets have another one.

    Returns:
        `<uuid>/<table>/_common_metadata`.

    Raises:
        InvalidKeyError: the uuid or the table's name is invalid.
    """
    return join_key(validate_uuid(uuid), table, COMMON_METADATA)


def published_index_key(uuid: str, column: str, commit_id: str) -> str:
    """Key of an index file that other programs read, of an index that is stored as segments.

    Args:
        uuid: the dataset's uuid.
        column: the indexed column.
        commit_id: the commit that the dataset's entry in the log is of.
    """
    return join_key(
        validate_uuid(uuid), INDICES, quote(column), f"published-{commit_id}{INDEX_SUFFIX}"
    )


def index_key(uuid: str, column: str, timestamp: datetime, commit_id: str) -> str:
    """Key of a new index file. Two commits never share one, unlike in Kartothek.

    Args:
        uuid: the dataset's uuid.
        column: the indexed column.
        timestamp: when the index was made; converted to UTC if it is aware.
        commit_id: the commit that writes it.

    Returns:
        `<uuid>/indices/<column>/<timestamp>-<commit>.by-dataset-index.parquet`, column and
        timestamp percent-encoded.

    Raises:
        InvalidKeyError: the result is not a valid key.
    """
    if timestamp.tzinfo is not None:
        timestamp = timestamp.astimezone(UTC).replace(tzinfo=None)
    name = f"{quote(timestamp.isoformat())}-{commit_id}{INDEX_SUFFIX}"
    return join_key(validate_uuid(uuid), INDICES, quote(column), name)
