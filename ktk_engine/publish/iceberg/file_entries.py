"""Entries of manifests: how Iceberg's metadata describes a dataset's files.

See docs/design/files-and-commits.md, Iceberg.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ktk_engine.publish.iceberg.iceberg_metadata import Addresses
from ktk_engine.publish.iceberg.manifest import ADDED, Entry, Layout
from ktk_engine.publish.iceberg.single_values import bounds, plain_values
from ktk_engine.publish.stored_types import check_measured, counted_columns
from ktk_engine.snapshot.snapshot import (
    MAXIMUM_PREFIX,
    MINIMUM_PREFIX,
    NULLS_PREFIX,
    PARTITION_PREFIX,
    Snapshot,
    is_own,
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
            "nan_value_counts": None,
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
    """Counts and bounds of the columns of each file.

    Files of other programs get only counts, since readers would trust their bounds.
    """
    known, by_name = set(snapshot.file_table.column_names), {f["name"]: f for f in fields}
    plain = [by_name[name] for name in counted_columns(snapshot, _COUNTED_COLUMNS)]
    own, rows = is_own(snapshot.file_table).to_pylist(), snapshot.file_column("rows").to_pylist()

    def of_columns(prefix: str) -> dict[int, list[Any]]:
        found = {}
        for field in plain:
            if prefix + field["name"] in known:
                column = snapshot.file_column(prefix + field["name"])
                found[field["id"]] = (
                    column.to_pylist()
                    if prefix == NULLS_PREFIX
                    else bounds(
                        field["type"],
                        plain_values(column, field["type"]),
                        prefix == MAXIMUM_PREFIX,
                    )
                )
        return found

    nulls = of_columns(NULLS_PREFIX)
    lower, upper = of_columns(MINIMUM_PREFIX), of_columns(MAXIMUM_PREFIX)
    for row, count in enumerate(rows):
        empty = _pairs(nulls, row)
        yield {
            "null_value_counts": empty,
            "value_counts": [{"key": item["key"], "value": count} for item in empty or ()] or None,
            "lower_bounds": _pairs(lower, row) if own[row] else None,
            "upper_bounds": _pairs(upper, row) if own[row] else None,
        }


def _pairs(columns: Mapping[int, list[Any]], row: int) -> list[dict[str, Any]] | None:
    found = ((number, values[row]) for number, values in columns.items())
    return [{"key": number, "value": v} for number, v in found if v is not None] or None
