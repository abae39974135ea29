"""Manifests: the files of a table, in pieces of which a commit rewrites only those that change.

See docs/design/files-and-commits.md, Iceberg.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ktk_engine.errors import FormatError, InvalidKeyError, PublishError, StoreError
from ktk_engine.extras import need
from ktk_engine.format.field_types import check_types
from ktk_engine.publish.iceberg.avro_files import parse_avro, render_avro
from ktk_engine.publish.iceberg.avro_schemas import MANIFEST_LIST, manifest_schema
from ktk_engine.publish.iceberg.iceberg_metadata import Addresses
from ktk_engine.publish.iceberg.single_values import plain_value, summary

EXISTING, ADDED, DELETED = 0, 1, 2
# Numbers of a manifest list that the next one is made from.
_COUNTED = (
    "added_files_count",
    "existing_files_count",
    "added_rows_count",
    "existing_rows_count",
    "sequence_number",
    "added_snapshot_id",
)
_OF_FILE = {"file_path": str, "record_count": int, "partition": dict}
_NUMBERS = re.compile(r"\.(\d+)-(\d+)\.avro$")

Entry = dict[str, Any]  # a record of a manifest
Listed = dict[str, Any]  # a record of a manifest list, of one manifest


@dataclass(frozen=True)
class Layout:
    """What manifests say about the table, apart from its files."""

    schema: Mapping[str, Any]
    spec_id: int  # of the partition spec
    spec: Sequence[Mapping[str, Any]]  # fields of the partition spec
    partition_fields: list[tuple[str, int, str]] = field(init=False)

    def __post_init__(self) -> None:
        types = {item["id"]: item["type"] for item in self.schema["fields"]}
        found = [(item["name"], item["field-id"], types[item["source-id"]]) for item in self.spec]
        object.__setattr__(self, "partition_fields", found)


@dataclass(frozen=True)
class NewSnapshot:
    """The snapshot that manifests are written for."""

    id: int
    sequence: int  # sequence number
    parent: int | None  # id of the snapshot before


def render_manifest(layout: Layout, entries: Sequence[Entry]) -> bytes:
    """Render a manifest as an Avro file."""
    metadata = {
        "schema": json.dumps(layout.schema),
        "schema-id": str(layout.schema["schema-id"]),
        "partition-spec": json.dumps(list(layout.spec)),
        "partition-spec-id": str(layout.spec_id),
        "format-version": "2",
        "content": "data",
    }
    return render_avro(manifest_schema(layout.partition_fields), entries, metadata)


def render_list(manifests: Sequence[Listed], snapshot: NewSnapshot) -> bytes:
    """Render a manifest list as an Avro file."""
    metadata = {
        "snapshot-id": str(snapshot.id),
        "parent-snapshot-id": "null" if snapshot.parent is None else str(snapshot.parent),
        "sequence-number": str(snapshot.sequence),
        "format-version": "2",
    }
    return render_avro(MANIFEST_LIST, manifests, metadata)


def listed(
    layout: Layout, path: str, data: bytes, entries: Sequence[Entry], snapshot: NewSnapshot
) -> Listed:
    """The entry of a written manifest, with its address and content, in a manifest list."""
    found: Listed = {
        "manifest_path": path,
        "manifest_length": len(data),
        "partition_spec_id": layout.spec_id,
        "content": 0,
        "sequence_number": snapshot.sequence,
        "added_snapshot_id": snapshot.id,
        "key_metadata": None,
    }
    for name, status in (("added", ADDED), ("existing", EXISTING), ("deleted", DELETED)):
        rows = [e["data_file"]["record_count"] for e in entries if e["status"] == status]
        found[f"{name}_files_count"], found[f"{name}_rows_count"] = len(rows), sum(rows)
    living = [e["sequence_number"] for e in entries if e["status"] != DELETED]
    least = [snapshot.sequence if number is None else number for number in living]
    found["min_sequence_number"] = min(least, default=snapshot.sequence)
    partitions = [entry["data_file"]["partition"] for entry in entries]
    found["partitions"] = [
        summary(kind, (plain_value(values[name]) for values in partitions))
        for name, _, kind in layout.partition_fields
    ]
    return found


def read_entries(addresses: Addresses, manifest: Listed) -> list[Entry]:
    """The living entries of a manifest, with what they inherit from it.

    Raises a `FormatError` if it is damaged, and an `ObjectNotFoundError` if it is missing.
    """
    path: str = manifest["manifest_path"]
    with _as_format_error(path):
        entries = [entry for entry in parse_avro(addresses.get(path)) if entry["status"] != DELETED]
        for entry in entries:
            if entry["snapshot_id"] is None:
                entry["snapshot_id"] = manifest["added_snapshot_id"]
            for name in ("sequence_number", "file_sequence_number"):
                if entry[name] is None:
                    entry[name] = manifest["sequence_number"]
            check_types(entry["data_file"], _OF_FILE)
    return entries


def read_list(addresses: Addresses, path: str) -> list[Listed]:
    """Read a manifest list that this library wrote at an address.

    Raises a `FormatError` if it is damaged, and an `ObjectNotFoundError` if it is missing.
    """
    with _as_format_error(path):
        found = parse_avro(addresses.get(path))
        for item in found:
            check_types(item, {"manifest_path": str, **dict.fromkeys(_COUNTED, int)})
    return found


def checked_content(addresses: Addresses, path: str) -> bytes:
    """The content of a manifest or manifest list, which other libraries can then read.

    Raises as `read_list` does.
    """
    with _as_format_error(path):
        data = addresses.get(path)
        parse_avro(data)
    return data


@contextmanager
def _as_format_error(path: str) -> Iterator[None]:
    """Turn errors of reading a file into a `FormatError`: Avro's readers raise any."""
    try:
        yield
    except Exception as error:
        if isinstance(error, StoreError) and not isinstance(error, InvalidKeyError):
            raise
        raise FormatError(f"{path} is damaged: {error!r}") from error


def living_files(manifest: Listed) -> int:
    """How many files of the table a manifest names."""
    count: int = manifest["added_files_count"] + manifest["existing_files_count"]
    return count


def with_numbers(name: str, first: int, last: int) -> str:
    """A manifest's name with the range of its files' numbers; see `numbers`."""
    return f"{name}.{first}-{last}.avro"


def numbers(manifest: Listed) -> tuple[int, int]:
    """The range of numbers of a manifest's files; raises a `FormatError` if its name has none."""
    found = _NUMBERS.search(manifest["manifest_path"])
    if found is None:
        raise FormatError(f"{manifest['manifest_path']} has a name of another program")
    return int(found[1]), int(found[2])


def need_avro() -> None:
    """Raise a `PublishError` if the package that reads and writes Avro is not installed."""
    need("iceberg", "Publishing as Iceberg", "fastavro", error=PublishError)
