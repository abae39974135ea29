"""A reader made from docs/design/format.md alone: JSON, Parquet, and nothing of the library.

It reads rows as the page says, the simplest way, and verifies all digests on its way.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

Document = dict[str, Any]
Cell = tuple[Any, ...]
DIMENSIONS, PARTITIONS = "ktk_cube_dimension_columns", "ktk_cube_partition_columns"
_START, _DIGITS = b'{\n "sha256": "', 64


class Reader:
    """A store as the page describes it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def scopes(self) -> list[str]:
        """All scopes, as in `cube/nyc`."""
        found = (self.root / ".ktk").glob("*/*/log")
        return sorted(path.parent.relative_to(self.root / ".ktk").as_posix() for path in found)

    def entries(self, scope: str) -> list[Document]:
        """All log entries of a scope in order, each verified by the one after it."""
        paths = sorted((self.root / ".ktk" / scope / "log").glob("[0-9]*.json"))
        entries, before = [], ("", "")
        for path in paths:
            data = path.read_bytes()
            entry = _checksummed(data)
            assert (entry["parent"]["commit"], entry["parent"]["sha256"]) == before, path
            before = (entry["commit"], hashlib.sha256(data).hexdigest())
            entries.append(entry)
        return entries

    def readable(self, scope: str) -> list[Document]:
        """The entries of all versions that can be read, the newest first."""
        found, gone = [], set[str]()
        for entry in reversed(self.entries(scope)):
            needed = {item["snapshot"] for item in entry["datasets"].values()}
            if not needed & gone and all((self.root / key).exists() for key in needed):
                found.append(entry)
            gone.update(entry["deleted"])
        return found

    def rows(self, entry: Document) -> dict[str, list[Document]]:
        """The rows of each dataset of a version by uuid, and those of a cube by its name."""
        snapshots = {uuid: self.snapshot(item) for uuid, item in entry["datasets"].items()}
        rows = {uuid: self._rows(*found).to_pylist() for uuid, found in snapshots.items()}
        documents = {uuid: document for uuid, (document, _) in snapshots.items()}
        seeds = [u for u, d in documents.items() if d["metadata"].get("ktk_cube_is_seed")]
        kind, _, name = entry["scope"].partition("/")
        if kind == "cube" and seeds:
            rows[name] = _joined(documents, rows, seeds[0])
        return rows

    def views(self) -> list[Document]:
        """All views."""
        paths = sorted((self.root / ".ktk/view").glob("*.json"))
        return [_checksummed(path.read_bytes()) for path in paths]

    def _parquet(self, key: str, sha256: str) -> pa.Table:
        data = (self.root / key).read_bytes()
        assert hashlib.sha256(data).hexdigest() == sha256, key
        return pq.ParquetFile(pa.BufferReader(data)).read()

    def snapshot(self, item: Document) -> tuple[Document, pa.Table]:
        """A snapshot's JSON, and its table of files in order."""
        files = self._parquet(item["snapshot"], item["snapshot_sha256"])
        document = json.loads(files.schema.metadata[b"ktk"])
        _check_format(document)
        if "files" in document:
            parts = list(self._living(files))
            schema = _schema(document["files"])
            parts = [pa.table([_column(part, f) for f in schema], schema=schema) for part in parts]
            files = pa.concat_tables([schema.empty_table(), *parts])
        return document, files.sort_by("position")

    def _living(self, listed: pa.Table) -> Iterator[pa.Table]:
        for segment in listed.to_pylist():
            files = self._parquet(segment["key"], segment["sha256"])
            yield files.take([n for n in range(files.num_rows) if n not in segment["gone"]])

    def _rows(self, document: Document, files: pa.Table) -> pa.Table:
        """The rows of a dataset, of each cell the last one."""
        schema = _schema(document["schema"])
        tables = [self._file(row, document["partition_keys"], schema) for row in files.to_pylist()]
        table = pa.concat_tables([schema.empty_table(), *tables])
        if DIMENSIONS not in document["metadata"]:
            return table
        names = _cell_columns(document, schema.names)
        last = {_cell(row, names): n for n, row in enumerate(table.select(names).to_pylist())}
        return table.take(sorted(last.values()))

    def _file(self, row: Document, partition_keys: Sequence[str], schema: pa.Schema) -> pa.Table:
        data = (self.root / row["key"]).read_bytes()
        if row["digest"] is not None:
            assert hashlib.sha256(data).digest()[:16] == row["digest"], row["key"]
            assert hashlib.sha256(data[-row["tail"] :]).digest()[:16] == row["tail_digest"]
        stored = pq.ParquetFile(pa.BufferReader(data)).read()
        columns = []
        for field in schema:
            if field.name in partition_keys:
                value = pa.scalar(row[f"partition.{field.name}"], field.type)
                columns.append(pa.chunked_array([pa.repeat(value, stored.num_rows)]))
            else:
                columns.append(_column(stored, field))
        return pa.table(columns, schema=schema)


def _joined(
    documents: Mapping[str, Document], rows: Mapping[str, list[Document]], seed: str
) -> list[Document]:
    """The rows of a cube: those of its seed dataset, with what the others have of their cells."""
    schemas = {uuid: _schema(document["schema"]).names for uuid, document in documents.items()}
    metadata = documents[seed]["metadata"]
    shared = [*metadata[DIMENSIONS], *metadata[PARTITIONS]]
    names = [*shared, *_payload(schemas[seed], shared)]
    joined = [{name: row[name] for name in names} for row in rows[seed]]
    for uuid in sorted(set(documents) - {seed}):
        names = _cell_columns({**documents[uuid], "metadata": metadata}, schemas[uuid])
        known = {_cell(row, names): row for row in rows[uuid]}
        for row in joined:
            cell = _cell(row, names)
            match = {} if None in cell else known.get(cell, {})
            row |= {name: match.get(name) for name in _payload(schemas[uuid], shared)}
    return joined


def _checksummed(data: bytes) -> Document:
    behind = len(_START) + _DIGITS + len(b'",')
    assert data.startswith(_START)
    document: Document = json.loads(data)
    assert document.pop("sha256") == hashlib.sha256(b"{" + data[behind:]).hexdigest()
    _check_format(document)
    return document


def _check_format(document: Document) -> None:
    assert (document["format"], document["needs"]) == (8, [])


def _schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def _column(stored: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    """A column in the type of the schema; null where the file lacks it."""
    if field.name not in stored.column_names or pat.is_null(field.type):
        return pa.chunked_array([pa.nulls(stored.num_rows, field.type)])
    values = stored[field.name]
    if pat.is_nested(field.type):  # fields by name, whatever their order
        return pa.chunked_array([pa.array(values.to_pylist(), field.type)])
    return values.cast(field.type)


def _cell_columns(document: Document, columns: Sequence[str]) -> list[str]:
    """The partition columns and the dimensions that address a row."""
    metadata = document["metadata"]
    within = [name for name in metadata[PARTITIONS] if name in document["partition_keys"]]
    return within + [name for name in metadata[DIMENSIONS] if name in columns]


def _cell(row: Document, names: Sequence[str]) -> Cell:
    """A row's cell, equal for equal cells: NaN is one value, and -0.0 is 0.0 in Python."""
    values = [row[name] for name in names]
    return tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in values)


def _payload(columns: Sequence[str], shared: Sequence[str]) -> list[str]:
    others = [name for name in columns if name not in shared]
    return [name for name in others if name != "KLEE_TS" and not name.startswith("__")]
