"""Stores the table of files of a large dataset in segments, and compacts those of one size.

See docs/design/scale.md, Snapshots in segments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.snapshot.file_segments import (
    HIGH,
    LISTED,
    LOW,
    PARTITION_PREFIX,
    POSITION,
    UNKNOWN,
    SegmentedFiles,
    SegmentReader,
    total_of,
)
from ktk_engine.snapshot.stored_files import FileTable
from ktk_engine.store.interface import ObjectStore

_MOST_WHOLE = 1024  # files; larger datasets are stored in segments
_SEGMENT = 16_384  # files, about a megabyte
_TIER = 8  # most segments of a tier, and the factor between tiers
_MERGED = 2048  # files; larger segments are left to `ktk compact`
_DEAD = 4  # a segment is rewritten if more than a quarter of its files is gone
_REWRITTEN = 8  # segments that one commit rewrites for that reason
# Values that rarely repeat: a dictionary of them would only cost more.
_DISTINCT = ("position", "label", "key", "tail_digest", "digest", "cells", "min.", "max.")


def is_segmented(files: FileTable) -> bool:
    """Whether a table of files is large enough to be stored in segments."""
    return files.num_rows > _MOST_WHOLE


def is_scattered(files: FileTable) -> bool:
    """Whether a table of files has many more segments than it needs, or needs some and has none."""
    if not isinstance(files, SegmentedFiles):
        return is_segmented(files)
    return len(files.keys) > 2 * -(-files.num_rows // _SEGMENT)


def store_segments(
    store: ObjectStore,
    files: FileTable,
    partitions: Sequence[str],
    key: Callable[[int], str],
    *,
    compact: bool = True,
) -> tuple[SegmentedFiles, list[str]]:
    """Store the files that no segment has, and compact full tiers; also returns the keys written.

    `key` makes the key of a segment from its number. Raises an `ObjectExistsError` if a key is
    taken.
    """
    if not isinstance(files, SegmentedFiles):
        everything = files.select(files.column_names)
        nothing = _no_segments(files.schema, partitions)
        files = SegmentedFiles(nothing, files.schema, SegmentReader(store), everything)
    compacted = _due(files, compact)
    numbers = [n for n in range(files.listed.num_rows) if n not in compacted]
    names = files.column_names
    parts = [files.living_rows(n, names) for n in sorted(compacted)]
    rows = files.together([*parts, files.added], names)
    listed, written = [files.listed.take(pa.array(numbers, pa.int64()))], list[str]()
    new: dict[str, FileTable] = {}
    if rows.num_rows:
        keys = [(PARTITION_PREFIX + name, "ascending") for name in partitions]
        rows = rows.sort_by([*keys, (POSITION, "ascending")])
        count = -(-rows.num_rows // _SEGMENT)
        for number in range(count):
            start = rows.num_rows * number // count
            part = rows.slice(start, rows.num_rows * (number + 1) // count - start)
            part = part.combine_chunks()
            written.append(key(number))
            listed.append(_put(store, written[-1], part, partitions))
            new[written[-1]] = part
    table = pa.concat_tables(listed).sort_by("first")
    for name in table["key"].to_pylist():
        if name not in new and (read := files.reader.tables.get(name)) is not None:
            new[name] = read
    return SegmentedFiles(table, files.schema, SegmentReader(store, new)), written


def _due(files: SegmentedFiles, compact: bool) -> set[int]:
    """The segments to rewrite with the added files: full tiers, and those with many gone."""
    stored = files.listed["files"].to_numpy()
    gone = pc.list_value_length(files.listed["gone"]).to_numpy()
    left = (stored - gone).tolist()
    share = gone / np.maximum(stored, 1)
    due = set(np.flatnonzero(share > 1 / _DEAD)[np.argsort(-share[share > 1 / _DEAD])][:_REWRITTEN])
    if not compact:
        return due
    while True:
        new = sum(left[n] for n in due) + files.added.num_rows
        tiers: dict[int, list[int]] = {}
        for n, count in enumerate(left):
            if n not in due and count <= _MERGED:
                tiers.setdefault(_tier(count), []).append(n)
        # The new segment is one more of its tier.
        full = [
            members
            for tier, members in sorted(tiers.items())
            if len(members) + (new > 0 and tier == _tier(new)) > _TIER
        ]
        if not full:
            return due
        due.update(full[0])


def _tier(files: int) -> int:
    tier = 0
    while files >= _TIER:
        files //= _TIER
        tier += 1
    return tier


def _no_segments(schema: pa.Schema, partitions: Sequence[str]) -> pa.Table:
    fields = list(LISTED)
    for name in partitions:
        t = schema.field(PARTITION_PREFIX + name).type
        fields += [pa.field(LOW + name, t), pa.field(HIGH + name, t)]
        fields.append(pa.field(UNKNOWN + name, pa.int64()))
    return pa.schema(fields).empty_table()


def _put(store: ObjectStore, key: str, rows: pa.Table, partitions: Sequence[str]) -> pa.Table:
    """Store a segment; returns its row in the root's list."""
    sink = pa.BufferOutputStream()
    repeated = [name for name in rows.column_names if not name.startswith(_DISTINCT)]
    pq.write_table(rows, sink, compression="zstd", use_dictionary=repeated, write_statistics=False)
    data = sink.getvalue().to_pybytes()
    store.put_if_absent(key, data)
    schema = _no_segments(rows.schema, partitions).schema
    said: dict[str, Any] = {
        "key": key,
        "sha256": hashlib.sha256(data).hexdigest(),
        "first": pc.min(rows[POSITION]),
        "files": rows.num_rows,
        "rows": total_of(rows["rows"]),
        "bytes": total_of(rows["bytes"]),
        "gone": [],
    }
    for name in partitions:
        values = rows[PARTITION_PREFIX + name]
        said[LOW + name], said[HIGH + name] = _low_and_high(values)
        said[UNKNOWN + name] = values.null_count
    arrays = [_single(said[item.name], item.type) for item in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _single(value: Any, t: pa.DataType) -> pa.Array:
    return pa.repeat(value, 1) if isinstance(value, pa.Scalar) else pa.array([value], t)


def _low_and_high(values: pa.ChunkedArray) -> tuple[pa.Scalar, pa.Scalar]:
    """Bounds of partition values; unknown if one is NaN."""
    if pat.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        return pa.scalar(None, values.type), pa.scalar(None, values.type)
    found = pc.min_max(values)
    return found["min"], found["max"]
