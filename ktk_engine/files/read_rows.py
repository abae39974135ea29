"""Reads rows of data files with pyarrow, and partition values, which only paths have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.errors import DataError
from ktk_engine.files.data_file import read_data_file
from ktk_engine.format.file_digest import FileDigest
from ktk_engine.snapshot.snapshot import (
    PARTITION_PREFIX,
    Snapshot,
    check_partition_values,
    digests_of,
)
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.to_container import to_container

KEY = "__ktk_key"
_THREADS = 8
# The limit of 32-bit offsets.
_LARGEST_CHUNK = 1 << 31


def read_rows(
    store: ObjectStore,
    snapshot: Snapshot,
    files: pa.Table,
    columns: Sequence[str],
    schema: pa.Schema | None = None,
) -> pa.Table:
    """Read the rows of some files, at least one, in the order of the files.

    `schema` has the types of the columns, which must hold every value of their classes; None takes
    the types of the classes.
    """
    fields = [snapshot.schema.field(name) for name in columns]
    target = pa.schema(fields) if schema is None else schema
    known = values_by_file(snapshot, files, columns).to_pylist()

    def read(values: dict[str, Any], digest: FileDigest | None) -> pa.Table:
        return _read_file(store, values.pop(KEY), digest, values, pa.schema(fields), target)

    with ThreadPoolExecutor(min(_THREADS, len(known))) as pool:
        return pa.concat_tables(pool.map(read, known, digests_of(files)))


def values_by_file(snapshot: Snapshot, files: pa.Table, columns: Sequence[str]) -> pa.Table:
    """What files do not hold themselves: `KEY`, and the partition columns among `columns`."""
    names = [name for name in columns if name in snapshot.partition_keys]
    check_partition_values(replace(snapshot, file_table=files), names)
    facts = files.select(["key", *(PARTITION_PREFIX + name for name in names)])
    return facts.rename_columns([KEY, *names])


def _read_file(
    store: ObjectStore,
    key: str,
    digest: FileDigest | None,
    values: Mapping[str, object],
    classes: pa.Schema,
    target: pa.Schema,
) -> pa.Table:
    """Read the rows of one file by way of the containers of the columns' `classes`.

    For `values` see `in_containers`. Raises a `DataError` that names column and file if a value
    does not fit.
    """
    stored = [f.name for f in classes if f.name not in values and not pat.is_null(f.type)]
    table = read_data_file(store, key, digest, stored)
    try:
        table = in_containers(table, len(table), classes, values)
        columns = [_cast(*item) for item in zip(table.columns, target, strict=True)]
    except MisfitError as error:
        raise misfit(store, key, error.column, error) from error
    return pa.Table.from_arrays(columns, schema=target)


def _cast(values: pa.ChunkedArray, target: pa.Field) -> pa.ChunkedArray:
    try:
        return values.cast(target.type)
    except pa.ArrowInvalid as error:
        raise MisfitError(target.name, error) from error


class MisfitError(DataError):
    """A value of `column` does not fit into its class."""

    def __init__(self, column: str, reason: Exception) -> None:
        super().__init__(str(reason))
        self.column = column


def in_containers(
    table: pa.Table, count: int, target: pa.Schema, values: Mapping[str, object]
) -> pa.Table:
    """Cast columns of a file to the containers of their classes, of `count` rows.

    `values` holds by column what only the file's path tells. Other missing columns become null.
    Raises a `MisfitError` if a value is finer than its class.
    """
    if table.schema.equals(target):
        return table
    found: list[pa.Array | pa.ChunkedArray] = []
    stored = dict(zip(table.column_names, table.columns, strict=True))
    for field in target:
        if field.name in values:
            found.append(pa.repeat(pa.scalar(values[field.name], field.type), count))
        elif field.name in stored:
            try:
                found.append(_in_container(stored[field.name], field.type))
            except DataError as error:
                raise MisfitError(field.name, error) from error
        else:
            found.append(pa.nulls(count, field.type))
    return pa.Table.from_arrays(found, schema=target)


def _in_container(values: pa.ChunkedArray, t: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """The values unchanged if they fit already; else cast, in one chunk if all text fits."""
    if values.type.equals(t):
        return values
    if values.nbytes < _LARGEST_CHUNK and not pat.is_dictionary(values.type):
        return to_container(values, t)
    return pa.chunked_array([to_container(chunk, t) for chunk in values.chunks], t)


def misfit(store: ObjectStore, key: str, column: str, reason: Exception) -> DataError:
    """The error for a value of a file that its column cannot hold."""
    said = str(reason).rstrip(".")
    return DataError(
        f"Column `{column}` of the file {store.shown(key)} of {store.url} has a value that does "
        f"not fit: {said}. Leave the column out, or rewrite the file with values that fit."
    )
