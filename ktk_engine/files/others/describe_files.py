"""Completes snapshots by the footers of files of which only names are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.files.footers import Footer, FooterCache, statistics_of
from ktk_engine.files.physical_schemas import numbered
from ktk_engine.progress import Progress, no_progress
from ktk_engine.snapshot.snapshot import FILE_FIELDS, Snapshot, concat_files
from ktk_engine.store.interface import ObjectStore


def describe_files(
    store: ObjectStore, snapshots: Sequence[Snapshot], progress: Progress = no_progress
) -> list[Snapshot]:
    """Record rows, bytes, bounds and types of files that the snapshots do not describe.

    Files, their order and everything else stay. `progress` gets the number of footers read, and the
    total. Raises a `FormatError` if a file is damaged, and an `ObjectNotFoundError` if it is
    missing.
    """
    unknown = [_is_unknown(item) for item in snapshots]
    keys = [
        item.file_column("key").filter(mask).to_pylist()
        for item, mask in zip(snapshots, unknown, strict=True)
    ]
    footers = iter(FooterCache().read(store, [key for some in keys for key in some], progress))
    read = [[next(footers) for _ in some] for some in keys]
    return [
        _described(item, mask, found) if found else item
        for item, mask, found in zip(snapshots, unknown, read, strict=True)
    ]


def _is_unknown(snapshot: Snapshot) -> pa.ChunkedArray:
    rows, size, physical = map(snapshot.file_column, ("rows", "bytes", "physical"))
    return pc.or_(pc.or_(pc.is_null(rows), pc.is_null(size)), pc.is_null(physical))


def _described(snapshot: Snapshot, unknown: pa.ChunkedArray, footers: Sequence[Footer]) -> Snapshot:
    """A dataset with what the footers say about its unknown files."""
    files = snapshot.files
    added = files.filter(unknown)
    schemas, numbers = numbered(snapshot.physical_schemas, footers)
    values = {
        "rows": [footer.rows for footer in footers],
        "bytes": [footer.bytes for footer in footers],
        "physical": numbers,
        "own": [False] * len(footers),
    }
    for field in FILE_FIELDS:
        if field.name in values:
            place = added.schema.get_field_index(field.name)
            added = added.set_column(place, field, pa.array(values[field.name], field.type))
    named = {name for footer in footers for name in footer.bounds}
    named -= set(snapshot.partition_keys)
    columns = [n for n in snapshot.schema.names if n in named]
    found = statistics_of(footers, columns, snapshot.schema)
    there = set(found.column_names)
    added = added.select([name for name in added.column_names if name not in there])
    added = pa.table([*added.columns, *found.columns], [*added.column_names, *found.column_names])
    if added.num_rows < files.num_rows:
        added = concat_files([files.filter(pc.invert(unknown)), added]).sort_by("position")
    return replace(snapshot, file_table=added, physical_schemas=schemas)
