"""Reads the values of files that were written without an index."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.errors import DataError
from ktk_engine.files.data_file import read_data_file
from ktk_engine.format.file_digest import FileDigest
from ktk_engine.formatting import counted
from ktk_engine.messages import Remedy
from ktk_engine.snapshot.snapshot import Snapshot, digests_of
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.refusal import REFUSED_UNCOMMITTED, WriteProblem, refusal
from ktk_engine.types.to_container import to_container

_THREADS = 8
_FILES_AT_ONCE = 64


@dataclass(frozen=True)
class DistinctValues:
    """The distinct values of a column in each of some files."""

    values: pa.ChunkedArray  # one per value and file
    labels: pa.ChunkedArray  # the file of each value
    nulls: int  # rows without a value


def pairs_of_files(
    store: ObjectStore, base: Snapshot | None, files: pa.Table, column: pa.Field
) -> Iterator[tuple[pa.Array, int, str]]:
    """The distinct values of a column in each file that has it, with the file's number and label.

    With a `base` that belongs to a cube, raises a `DataError` if a row has no value in the column.
    Raises a `FormatError` if a file is damaged, and an `ObjectNotFoundError` if it is missing.
    """
    nulls = 0
    for start in range(0, files.num_rows, _FILES_AT_ONCE):
        some = files.slice(start, _FILES_AT_ONCE)
        for (values, missing), number, label in zip(
            _distinct(store, some, column),
            some["position"].to_pylist(),
            some["label"].to_pylist(),
            strict=True,
        ):
            nulls += missing
            yield values, number, label
    if nulls and base is not None and base.dimension_columns:
        rows = counted(nulls, "row has", "rows have")
        problem = WriteProblem(
            f"Of the rows that are stored, {rows} no value in `{column.name}`, which an index in "
            "a cube needs.",
            Remedy("no_null_in_index", column=column.name),
        )
        raise DataError(refusal(base.uuid, [problem], REFUSED_UNCOMMITTED))


def distinct_values(store: ObjectStore, files: pa.Table, column: pa.Field) -> DistinctValues:
    """Read the distinct values of a column in each file, and nothing else.

    Raises a `FormatError` if a file is damaged, and an `ObjectNotFoundError` if it is missing.
    """
    found = _distinct(store, files, column)
    labels: list[str] = files["label"].to_pylist()
    repeated = [pa.repeat(name, len(part)) for name, (part, _) in zip(labels, found, strict=True)]
    return DistinctValues(
        pa.chunked_array([part for part, _ in found], column.type),
        pa.chunked_array(repeated, pa.string()),
        sum(nulls for _, nulls in found),
    )


def _distinct(store: ObjectStore, files: pa.Table, column: pa.Field) -> list[tuple[pa.Array, int]]:
    """The distinct values of a column in each file, and the number of rows without one."""
    keys: list[str] = files["key"].to_pylist()
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(lambda *item: _values(store, column, *item), keys, digests_of(files)))


def _values(
    store: ObjectStore, column: pa.Field, key: str, digest: FileDigest | None
) -> tuple[pa.Array, int]:
    """The distinct values of a file's column, and the number of rows without one."""
    table = read_data_file(store, key, digest, [column.name])
    if column.name not in table.column_names:
        return pa.nulls(0, column.type), table.num_rows
    read = to_container(table[column.name], column.type)
    return pc.unique(read).drop_null(), read.null_count
