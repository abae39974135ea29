"""The Avro schemas of manifests and manifest lists, version 2.

See https://iceberg.apache.org/spec/, Manifests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ktk_engine.publish.iceberg.iceberg_schema import decimal_digits

_ODD = re.compile("[^A-Za-z0-9_]")
_PLAIN = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
}

_PARTITION = 3  # which field of a data file it is


def _required(name: str, kind: Any, number: int) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": number}


def _optional(name: str, kind: Any, number: int) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": number}


def _record(name: str, *fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _list(items: Any, number: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "element-id": number}


def _by_column(value: Any, number: int) -> dict[str, Any]:
    """A map from field ids, which Avro can only express as an array of pairs."""
    pair = _record(
        f"k{number}_v{number + 1}",
        _required("key", "int", number),
        _required("value", value, number + 1),
    )
    return {"type": "array", "logicalType": "map", "items": pair}


_SUMMARY = _record(
    "r508",
    _required("contains_null", "boolean", 509),
    _optional("contains_nan", "boolean", 518),
    _optional("lower_bound", "bytes", 510),
    _optional("upper_bound", "bytes", 511),
)
MANIFEST_LIST = _record(
    "manifest_file",
    _required("manifest_path", "string", 500),
    _required("manifest_length", "long", 501),
    _required("partition_spec_id", "int", 502),
    _required("content", "int", 517),
    _required("sequence_number", "long", 515),
    _required("min_sequence_number", "long", 516),
    _required("added_snapshot_id", "long", 503),
    _required("added_files_count", "int", 504),
    _required("existing_files_count", "int", 505),
    _required("deleted_files_count", "int", 506),
    _required("added_rows_count", "long", 512),
    _required("existing_rows_count", "long", 513),
    _required("deleted_rows_count", "long", 514),
    _optional("partitions", _list(_SUMMARY, 508), 507),
    _optional("key_metadata", "bytes", 519),
)


def manifest_schema(partition_fields: Sequence[tuple[str, int, str]]) -> dict[str, Any]:
    """The schema of manifest entries; a partition field is its name, id and Iceberg type."""
    return _manifest(
        [_optional(name, _of(kind, number), number) for name, number, kind in partition_fields]
    )


def _manifest(partition: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    data_file = _record(
        "r2",
        _required("content", "int", 134),
        _required("file_path", "string", 100),
        _required("file_format", "string", 101),
        _required("partition", _record("r102", *partition), 102),
        _required("record_count", "long", 103),
        _required("file_size_in_bytes", "long", 104),
        _optional("column_sizes", _by_column("long", 117), 108),
        _optional("value_counts", _by_column("long", 119), 109),
        _optional("null_value_counts", _by_column("long", 121), 110),
        _optional("nan_value_counts", _by_column("long", 138), 137),
        _optional("lower_bounds", _by_column("bytes", 126), 125),
        _optional("upper_bounds", _by_column("bytes", 129), 128),
        _optional("key_metadata", "bytes", 131),
        _optional("split_offsets", _list("long", 133), 132),
        _optional("equality_ids", _list("int", 136), 135),
        _optional("sort_order_id", "int", 140),
    )
    return _record(
        "manifest_entry",
        _required("status", "int", 0),
        _optional("snapshot_id", "long", 1),
        _optional("sequence_number", "long", 3),
        _optional("file_sequence_number", "long", 4),
        _required("data_file", data_file, 2),
    )


def is_manifest_schema(schema: Any) -> bool:
    """Whether `manifest_schema` can have made a schema; an error of any kind says no, too."""
    stored = schema["fields"][-1]["type"]["fields"][_PARTITION]["type"]["fields"]
    fields = [_optional(item["name"], item["type"][1], item["field-id"]) for item in stored]
    kinds = [item["type"][1] for item in fields]
    flat = all(kind in _PLAIN.values() or kind["type"] == "fixed" for kind in kinds)
    return bool(flat and schema == _manifest(fields))


def avro_name(name: str) -> str:
    """A name that Avro allows, made as Iceberg makes it."""
    plain = _ODD.sub(lambda found: f"_x{ord(found[0]):X}", name)
    return f"_{plain}" if plain[:1].isdigit() else plain


def _of(kind: str, number: int) -> Any:
    """The Avro type of a partition field; a name in a schema belongs to one type only."""
    if kind.startswith("fixed["):
        size = int(kind[len("fixed[") : -1])
        return {"type": "fixed", "name": f"fixed_{number}", "size": size}
    if kind.startswith("decimal("):
        precision, scale = decimal_digits(kind)
        size = ((10**precision - 1).bit_length() + 8) // 8
        said = {"logicalType": "decimal", "precision": precision, "scale": scale}
        return {"type": "fixed", "name": f"decimal_{number}", "size": size, **said}
    return _PLAIN[kind]
