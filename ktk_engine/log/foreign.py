"""Snapshots of datasets that another writer made: plain Kartothek v4, read as they are."""

from __future__ import annotations

import pyarrow as pa

from ktk_engine.format.common_metadata import read_common_metadata
from ktk_engine.format.dataset_key import TABLE, common_metadata_key
from ktk_engine.format.document import DatasetDocument
from ktk_engine.format.label import partition_table
from ktk_engine.log.snapshot import Snapshot, files_table
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.schema import dataset_schema


def snapshot_of_document(store: ObjectStore, document: DatasetDocument) -> Snapshot:
    """Describe a dataset by its published Kartothek files.

    Rows, bytes and statistics of its files are unknown here: only their footers tell.

    Args:
        store: where the dataset lives.
        document: its metadata document.

    Raises:
        ObjectNotFoundError: the dataset has no `_common_metadata`.
        FormatError: a document or label breaks the format's rules.
    """
    data = store.get(common_metadata_key(document.uuid, document.table))
    schema = dataset_schema(read_common_metadata(data), document.partition_keys)
    labels = list(document.partitions)
    partitions = (
        partition_table(labels, document.partition_keys, schema)
        if document.partition_keys
        else pa.table({})
    )
    return Snapshot(
        uuid=document.uuid,
        schema=schema,
        partition_keys=document.partition_keys,
        files=files_table(labels, list(document.partitions.values()), partitions),
        indices=dict(document.indices),
        metadata=dict(document.metadata),
        properties={} if document.table == TABLE else {"table": document.table},
    )
