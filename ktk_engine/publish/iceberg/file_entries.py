"""Entries of manifests: how Iceberg's metadata describes a dataset's files.

See docs/design/files-and-commits.md, Iceberg.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ktk_engine.publish.iceberg.iceberg_metadata import Addresses
from ktk_engine.publish.iceberg.manifest import ADDED, Entry, Layout
from ktk_engine.publish.iceberg.single_values import bounds, plain_values
from ktk_engine.publish.stored_types import (
    bounds_of_files,
    check_measured,
    counted_columns,
    nan_counts,
    null_counts,
)
from ktk_engine.snapshot.snapshot import (
    MAXIMUM_PREFIX,
    MINIMUM_PREFIX,
    PARTITION_PREFIX,
    Snapshot,
)

_COUNTED_COLUMNS = 100  # columns with statistics, Iceberg's own default


def file_entries(
    addresses: Addresses, snapshot: Snapshot, layout: Layout, snapshot_id: int
) -> Iterator[tuple[int, Entry]]:
    """The manifest entry of each file of a snapshot, with the file's number.

    Raises a `PublishError` if the rows or the size of a file are unknown.
    """
    check_measured(snapshot, "rows", "bytes")
    names = ("position", "key", "rows", "bytes")
    columns = [snapshot.file_column(name).to_pylist() for name in names]
    partitions = _partition_values(snapshot, layout)
    statistics = _statistics(snapshot, layout.schema["fields"])
    for (number, key, rows, size), values, known in zip(
        zip(*columns, strict=True), partitions, statistics, strict=True
    ):
        data_file = {
            "content": 0,
            "file_path": addresses.address(key),
            "file_format": "PARQUET",
            "partition": values,
            "record_count": rows,
            "file_size_in_bytes": size,
            "column_sizes": None,
            "key_metadata": None,
            "split_offsets": None,
            "equality_ids": None,
            "sort_order_id": 0,
            **known,
        }
        yield (
            number,
            {
                "status": ADDED,
                "snapshot_id": snapshot_id,
                "sequence_number": None,
                "file_sequence_number": None,
                "data_file": data_file,
            },
        )


def _partition_values(snapshot: Snapshot, layout: Layout) -> Iterator[dict[str, Any]]:
    columns = {
        said: plain_values(snapshot.file_column(PARTITION_PREFIX + name), kind)
        for name, (said, _, kind) in zip(
            snapshot.partition_keys, layout.partition_fields, strict=True
        )
    }
    for row in range(snapshot.file_table.num_rows):
        yield {said: values[row] for said, values in columns.items()}


def _statistics(
    snapshot: Snapshot, fields: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, list[dict[str, Any]] | None]]:
    """Counts and bounds of the columns of each file."""
    by_name = {field["name"]: field for field in fields}
    plain = [by_name[name] for name in counted_columns(snapshot, _COUNTED_COLUMNS)]
    rows = snapshot.file_column("rows").to_pylist()

    def bounds_of(prefix: str) -> dict[int, list[Any]]:
        found = {}
        for field in plain:
            column, kind = bounds_of_files(snapshot, prefix, field["name"]), field["type"]
            if column.null_count < len(column):
                values = plain_values(column, kind)
                found[field["id"]] = bounds(kind, values, prefix == MAXIMUM_PREFIX)
        return found

    nulls = {f["id"]: null_counts(snapshot, f["name"]).to_pylist() for f in plain}
    nans = {
        f["id"]: nan_counts(snapshot, f["name"]).to_pylist()
        for f in plain
        if f["type"] in ("float", "double")
    }
    lower, upper = bounds_of(MINIMUM_PREFIX), bounds_of(MAXIMUM_PREFIX)
    for row, count in enumerate(rows):
        empty = _pairs(nulls, row)
        yield {
            "null_value_counts": empty,
            "nan_value_counts": _pairs(nans, row),
            "value_counts": [{"key": item["key"], "value": count} for item in empty or ()] or None,
            "lower_bounds": _pairs(lower, row),
            "upper_bounds": _pairs(upper, row),
        }


def _pairs(columns: Mapping[int, list[Any]], row: int) -> list[dict[str, Any]] | None:
    found = ((number, values[row]) for number, values in columns.items())
    return [{"key": number, "value": v} for number, v in found if v is not None] or None
