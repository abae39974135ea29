"""Checkpoints of a Delta log: its whole state at one version, as a parquet file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_TEXTS = pa.map_(pa.string(), pa.string())
_SCHEMA = pa.schema(
    {
        "txn": pa.struct(
            {"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()},
        ),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": _TEXTS,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
                "stats": pa.string(),
            }
        ),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "name": pa.string(),
                "description": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.field("element", pa.string())),
                "configuration": _TEXTS,
                "createdTime": pa.int64(),
            }
        ),
        "protocol": pa.struct(
            {
                "minReaderVersion": pa.int32(),
                "minWriterVersion": pa.int32(),
                "readerFeatures": pa.list_(pa.field("element", pa.string())),
                "writerFeatures": pa.list_(pa.field("element", pa.string())),
            }
        ),
    }
)
_MAPS = {"metaData": ("configuration",), "add": ("partitionValues",)}


def render_checkpoint(actions: Sequence[Mapping[str, Any]]) -> bytes:
    """Render a parquet file with one row per action: txn, add, metaData and protocol.

    Actions have the form of log entries, and no file occurs twice.
    """
    rows = [{kind: _with_pairs(kind, item) for kind, item in row.items()} for row in actions]
    table = pa.Table.from_pylist(rows, schema=_SCHEMA)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="snappy")
    data: bytes = sink.getvalue().to_pybytes()
    return data


def parse_checkpoint(data: bytes) -> Iterator[dict[str, Any]]:
    """Read the actions of a checkpoint; of files only what identifies them.

    Raises a `ValueError` or an Arrow error if it is damaged.
    """
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        if file.metadata.num_rows > len(data):  # each has a path of its own
            raise ValueError(f"it has {file.metadata.num_rows:,} rows in {len(data):,} bytes")
        adds = ("add.path", "add.deletionVector.")
        wanted = [
            path
            for number in range(len(file.schema))
            if (path := file.schema.column(number).path).startswith(adds)
            or path.split(".")[0] in ("txn", "metaData", "protocol")
        ]
        table = file.read(wanted)
    for row in table.to_pylist():
        yield {kind: _with_mappings(item) for kind, item in row.items() if item is not None}


def _with_mappings(action: Mapping[str, Any]) -> dict[str, Any]:
    """An action whose mappings have the form of log entries; Arrow before 19 returns only pairs."""
    found = {**action}
    if "configuration" in found:
        found["format"] = {**found["format"], "options": _mapping(found["format"]["options"])}
        found["configuration"] = _mapping(found["configuration"])
    return found


def _mapping(pairs: Sequence[tuple[str, str]] | None) -> dict[str, str] | None:
    """A mapping from its pairs; raises a `ValueError` if a key occurs twice."""
    mapping = None if pairs is None else dict(pairs)
    if mapping is not None and len(mapping) != len(pairs or ()):
        raise ValueError("a mapping has a key twice")
    return mapping


def _with_pairs(kind: str, action: Mapping[str, Any]) -> dict[str, Any]:
    """An action whose mappings have the form that Arrow takes."""
    pairs = {name: list(action[name].items()) for name in _MAPS.get(kind, ()) if action.get(name)}
    found = {**action, **pairs}
    if kind == "metaData":
        found["format"] = {**action["format"], "options": []}
    return found
