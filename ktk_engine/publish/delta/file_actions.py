"""Add and remove actions: what a Delta log says about a dataset's files.

See docs/design/files-and-commits.md, Delta.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from math import isinf
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.errors import KtkError, PublishError
from ktk_engine.format.label import partition_path
from ktk_engine.format.partition_text import HIVE_NULL
from ktk_engine.publish.stored_types import (
    bounds_of_files,
    check_measured,
    counted_columns,
    null_counts,
)
from ktk_engine.snapshot.snapshot import (
    MAXIMUM_PREFIX,
    MINIMUM_PREFIX,
    PARTITION_PREFIX,
    Snapshot,
)

_COUNTED_COLUMNS = 32  # columns with statistics, Delta's own default
# Digits of decimals that survive in readers that read all JSON numbers as doubles.
_DOWN, _UP = Context(prec=15, rounding=ROUND_FLOOR), Context(prec=15, rounding=ROUND_CEILING)
_PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d+)?Z?)?")


def relative_path(uuid: str, key: str) -> str:
    """Path of a file below the dataset's folder, as a URI."""
    return urllib.parse.quote(key[len(uuid) + 1 :], safe="/=")


def add_actions(
    snapshot: Snapshot, time: int, statistics: Statistics | None = None
) -> Iterator[dict[str, Any]]:
    """The add actions of all files of a snapshot; `time` is in milliseconds since 1970.

    Raises a `PublishError` if Delta cannot express partition values of a file, or its size is
    unknown.
    """
    check_measured(snapshot, "bytes")
    keys = snapshot.file_column("key").to_pylist()
    sizes = snapshot.file_column("bytes").to_pylist()
    partitions, texts = _partition_values(snapshot), (statistics or Statistics.of(snapshot)).texts()
    for key, size, values, stats in zip(keys, sizes, partitions, texts, strict=True):
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
            if value in ("", HIVE_NULL):
                raise PublishError(
                    f"partition column {name} holds {value!r}, which Delta readers read as null. "
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


@dataclass(frozen=True)
class Statistics:
    """Counts and bounds of files, each in JSON; None where Delta has none."""

    rows: list[int | None]
    # `minValues`, `maxValues` and `nullCount`, each by column
    columns: Mapping[str, Mapping[str, Sequence[str | None]]]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Statistics:
        """Those of a snapshot's files.

        Files of other programs get only counts, since readers would trust their bounds.
        """
        names = counted_columns(snapshot, _COUNTED_COLUMNS)
        columns = {
            key: {name: _in_json(bounds_of_files(snapshot, prefix, name), prefix) for name in names}
            for key, prefix in (("minValues", MINIMUM_PREFIX), ("maxValues", MAXIMUM_PREFIX))
        }
        counts = {name: null_counts(snapshot, name).cast(pa.string()) for name in names}
        columns["nullCount"] = {name: count.to_pylist() for name, count in counts.items()}
        return cls(snapshot.file_column("rows").to_pylist(), columns)

    @property
    def bounded(self) -> list[str]:
        """The columns of which every file has both bounds, or only nulls, as settings name them.

        delta-rs takes a bound that it does not find for one that no value fulfils.
        """
        keys = ("minValues", "maxValues", "nullCount")
        columns = {
            name: zip(*(self.columns[key][name] for key in keys), strict=True)
            for name in self.columns["nullCount"]
        }
        return [
            name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"
            for name, files in columns.items()
            if all(
                count is not None and (empty == str(count) or None not in (low, high))
                for count, (low, high, empty) in zip(self.rows, files, strict=True)
            )
        ]

    def texts(self) -> Iterator[str | None]:
        """The statistics of each file, as Delta has them."""
        for row, count in enumerate(self.rows):
            said = [f'"numRecords": {count}']
            for key, found in self.columns.items():
                values = [
                    f"{json.dumps(n)}: {v[row]}" for n, v in found.items() if v[row] is not None
                ]
                said.append(f'"{key}": {{{", ".join(values)}}}')
            yield None if count is None else f"{{{', '.join(said)}}}"


def _in_json(bounds: pa.Array, prefix: str) -> list[str | None]:
    """Bounds as JSON, never narrower than the values; None for what it cannot express."""
    t, is_min = bounds.type, prefix == MINIMUM_PREFIX
    if pat.is_date(t):
        return _moments(bounds.cast(pa.string()), "")
    if pat.is_timestamp(t):
        return _moments(_in_milliseconds(bounds, is_min), "" if t.tz is None else "Z")
    if pat.is_uint64(t):
        t = pa.decimal128(20)  # as in Delta
    return [None if value is None else _json_text(value, t, is_min) for value in bounds.to_pylist()]


def _json_text(value: Any, t: pa.DataType, is_min: bool) -> str | None:
    if pat.is_decimal(t):
        rounded = (_DOWN if is_min else _UP).create_decimal(value)
        return f"{rounded:f}" if rounded.adjusted() < t.precision - t.scale else None
    if pat.is_floating(t) and value == 0:
        return "-0.0" if is_min else "0.0"  # some readers order them
    if pat.is_floating(t) and isinf(value):
        return None
    if pat.is_binary(t) or pat.is_large_binary(t) or pat.is_fixed_size_binary(t) or pat.is_time(t):
        return None
    return json.dumps(value, ensure_ascii=False)


def _in_milliseconds(moments: pa.Array, is_min: bool) -> pa.Array:
    """Texts of moments in UTC, rounded outwards, as other writers do."""
    exact = moments.cast(pa.timestamp("us"))  # a zone only affects display: the instant is in UTC
    round_to = pc.floor_temporal if is_min else pc.ceil_temporal
    rounded = round_to(exact, unit="millisecond")
    texts = rounded.cast(pa.timestamp("ms")).cast(pa.string())
    return pc.if_else(pc.greater(pc.year(rounded), 9999), exact.cast(pa.string()), texts)


def _moments(texts: pa.Array, zone: str) -> list[str | None]:
    """Dates and times in ISO 8601; those outside of the years 0 to 9999 are left out."""
    return [
        f'"{text.replace(" ", "T")}{zone}"'
        if text is not None and _MOMENT.fullmatch(text)
        else None
        for text in texts.to_pylist()
    ]
