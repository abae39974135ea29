"""Builds an index over files that were written without one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ktk_engine.errors import DataError
from ktk_engine.format.index_file import build_index
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.counted import counted
from ktk_engine.types.to_container import to_container

_THREADS = 8


def index_of_files(
    store: ObjectStore, base: Snapshot, files: pa.Table, column: pa.Field
) -> pa.Table:
    """Index a column, reading nothing but this column of each file.

    Args:
        store: where the files lie.
        base: the dataset.
        files: rows of its table of files.
        column: its name and its committed type; none of the partition columns. A file that
            lacks it has no value in it.

    Returns:
        The index, see `build_index`.

    Raises:
        DataError: the dataset belongs to a cube, and a row has no value in the column.
    """
    keys: list[str] = files["key"].to_pylist()
    labels: list[str] = files["label"].to_pylist()
    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(lambda key: _values(store, key, column), keys))
    missing = sum(nulls for _, nulls in found)
    if missing and base.dimension_columns:
        rows = counted(missing, "row has", "rows have")
        raise DataError(
            f"Dataset {base.uuid} was refused (nothing was committed): of the rows that are "
            f"stored, {rows} no value in `{column.name}`, which an index in a cube needs. "
            "Take the column out of `indexes`, or give these rows a value in the model, for "
            f"instance coalesce({column.name}, 'unknown'), and run it with --full-refresh."
        )
    values = pa.chunked_array([part for part, _ in found], column.type)
    repeated = [pa.repeat(name, len(part)) for name, (part, _) in zip(labels, found, strict=True)]
    return build_index(values, pa.chunked_array(repeated, pa.string()))


def _values(store: ObjectStore, key: str, column: pa.Field) -> tuple[pa.Array, int]:
    """The distinct values of a file's column, and how many rows have none."""
    with store.open_read(key) as source, pq.ParquetFile(source) as file:
        if column.name not in file.schema_arrow.names:
            return pa.nulls(0, column.type), file.metadata.num_rows
        read = to_container(file.read(columns=[column.name])[column.name], column.type)
    return pc.unique(read).drop_null(), read.null_count
