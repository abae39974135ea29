"""Add and remove actions: what a Delta log says of a dataset's files.

See docs/design/files-and-commits.md, Delta.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.errors import KtkError, PublishError
from ktk_engine.format.label import partition_path
from ktk_engine.publish.stored_types import check_measured, counted_columns
from ktk_engine.snapshot.snapshot import (
    MAXIMUM_PREFIX,
    MINIMUM_PREFIX,
    NULLS_PREFIX,
    PARTITION_PREFIX,
    Snapshot,
    is_own,
)

_COUNTED_COLUMNS = 32  # columns with statistics, Delta's own default
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d+)?Z?)?")


def relative_path(uuid: str, key: str) -> str:
    """Path of a file below the dataset's folder, as a URI."""
    return urllib.parse.quote(key[len(uuid) + 1 :], safe="/=")


def add_actions(snapshot: Snapshot, time: int) -> Iterator[dict[str, Any]]:
    """The add actions of all files of a snapshot; `time` is in milliseconds since 1970.

    Raises a `PublishError` if Delta cannot express partition values of a file, or its size is
    unknown.
    """
    check_measured(snapshot, "bytes")
    keys = snapshot.file_column("key").to_pylist()
    sizes = snapshot.file_column("bytes").to_pylist()
    partitions = _partition_values(snapshot)
    for key, size, values, stats in zip(keys, sizes, partitions, _stats(snapshot), strict=True):
        yield {
            "path": relative_path(snapshot.uuid, key),
            "partitionValues": values,
            "size": size,
            "modificationTime": time,
            "dataChange": True,
            "stats": stats,
        }


def _partition_values(snapshot: Snapshot) -> Iterable[dict[str, str]]:
    """The partition values of each file as Delta writes them.

    Some readers take them from the path instead, so both have to be the same.
    """
    names, count = snapshot.partition_keys, snapshot.file_table.num_rows
    if not names:
        return [{} for _ in range(count)]
    columns = [snapshot.file_column(PARTITION_PREFIX + name).combine_chunks() for name in names]
    encoded = [column.dictionary_encode() for column in columns]
    texts = [
        pc.take(_texts(name, found.dictionary), found.indices).to_pylist()
        for name, found in zip(names, encoded, strict=True)
    ]
    _check_paths(snapshot, columns)
    return [dict(zip(names, values, strict=True)) for values in zip(*texts, strict=True)]


def _texts(name: str, values: pa.Array) -> pa.StringArray:
    t = values.type
    if pat.is_string(t):
        for value in values.to_pylist():
            if value in ("", _HIVE_NULL):
                raise PublishError(
                    f"partition column {name} holds {value!r}, which Delta readers take for null. "
                    "Give these rows another value"
                )
        return values
    if pat.is_boolean(t):
        return pc.if_else(values, "true", "false")
    if pat.is_timestamp(t) and t.tz is not None:
        values = pc.replace_substring(
            values.cast(pa.timestamp("us", "UTC")).cast("string"), " ", "T"
        )
        return values
    if pat.is_floating(t):
        return pa.array([_float_text(value) for value in values.to_pylist()], pa.string())
    return values.cast(pa.string())


def _float_text(value: float) -> str:
    return repr(value).replace("inf", "Infinity")


def _check_paths(snapshot: Snapshot, columns: list[pa.Array]) -> None:
    """Refuse files whose path, decoded once, has other values than they have."""
    names = snapshot.partition_keys
    types = [column.type for column in columns]
    folders = pc.replace_substring_regex(
        snapshot.file_column("label").combine_chunks(), r"(?s)/[^/]*$", ""
    )
    seen = folders.dictionary_encode()
    first = {code: row for row, code in reversed([*enumerate(seen.indices.to_pylist())])}
    for code, folder in enumerate(seen.dictionary.to_pylist()):
        values = [column[first[code]] for column in columns]
        try:
            wanted = partition_path(names, values, types)
        except KtkError as error:
            raise PublishError(f"file {folder}: {error}") from error
        if folder != wanted:
            raise PublishError(
                f"files of another program are in {folder}, where readers would look for other "
                f"values than in {wanted}. Rewrite them: rebuild the dataset"
            )


def _stats(snapshot: Snapshot) -> Iterator[str | None]:
    """The statistics of each file as Delta's JSON.

    Files of other programs get only counts, since readers would trust their bounds.
    """
    rows = snapshot.file_column("rows").to_pylist()
    own = is_own(snapshot.file_table).to_pylist()
    known = set(snapshot.file_table.column_names)
    plain = counted_columns(snapshot, _COUNTED_COLUMNS)
    columns = {
        key: {
            name: _json_values(snapshot.file_column(prefix + name), side)
            for name in plain
            if prefix + name in known
        }
        for key, prefix, side in (
            ("minValues", MINIMUM_PREFIX, "min"),
            ("maxValues", MAXIMUM_PREFIX, "max"),
            ("nullCount", NULLS_PREFIX, "count"),
        )
    }
    for row, count in enumerate(rows):
        if count is None:
            yield None
            continue
        stats: dict[str, Any] = {"numRecords": count}
        for key, found in columns.items():
            said = own[row] or key == "nullCount"
            stats[key] = {
                n: values[row] for n, values in found.items() if said and values[row] is not None
            }
        yield json.dumps(stats, ensure_ascii=False)


def _json_values(column: pa.ChunkedArray, side: str) -> list[Any]:
    """Bounds as JSON, never narrower than the values; None for what it cannot express.

    Floats have none, since recorded bounds leave NaN out. Nor have decimals, which JSON readers may
    round, and unsigned integers of 64 bits, which are decimals in Delta.
    """
    t = column.type
    if side != "count" and pat.is_uint64(t):
        return [None] * len(column)
    if side == "count" or pat.is_integer(t) or pat.is_string(t) or pat.is_large_string(t):
        values: list[Any] = column.to_pylist()
        return values
    if pat.is_date(t):
        return _moments(column.cast(pa.string()), "")
    if pat.is_timestamp(t):
        round_to = pc.floor_temporal if side == "min" else pc.ceil_temporal
        utc = column.cast(pa.timestamp("us"))  # a zone only affects display: the instant is in UTC
        texts = round_to(utc, unit="millisecond").cast(pa.timestamp("ms")).cast(pa.string())
        return _moments(texts, "" if t.tz is None else "Z")
    return [None] * len(column)


def _moments(texts: pa.ChunkedArray, zone: str) -> list[str | None]:
    """Dates and times in ISO 8601; those outside of the years 0 to 9999 are left out."""
    return [
        text.replace(" ", "T") + zone if text is not None and _MOMENT.fullmatch(text) else None
        for text in texts.to_pylist()
    ]
