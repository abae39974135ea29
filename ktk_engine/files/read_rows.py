"""Reads rows of data files with pyarrow, and partition values, which only paths have."""

from __future__ import annotations

from collections.abc import Sequence
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
    digests = digests_by_key(files)
    with ThreadPoolExecutor(min(_THREADS, len(known))) as pool:
        tables = pool.map(
            lambda values: read_file(store, values, target, fields, digests[values[KEY]]), known
        )
        return pa.concat_tables(tables)


def values_by_file(snapshot: Snapshot, files: pa.Table, columns: Sequence[str]) -> pa.Table:
    """What files do not hold themselves: `KEY`, and the partition columns among `columns`."""
    names = [name for name in columns if name in snapshot.partition_keys]
    check_partition_values(replace(snapshot, file_table=files), names)
    facts = files.select(["key", *(PARTITION_PREFIX + name for name in names)])
    return facts.rename_columns([KEY, *names])


def digests_by_key(files: pa.Table) -> dict[str, FileDigest | None]:
    """The digests that a snapshot records of its files; None for files of other writers."""
    return dict(zip(files["key"].to_pylist(), digests_of(files), strict=True))


def read_file(
    store: ObjectStore,
    values: dict[str, Any],
    target: pa.Schema,
    fields: list[pa.Field],
    digest: FileDigest | None,
) -> pa.Table:
    """Read the rows of one file as `target`; columns that the file lacks are null.

    `values` is a row of `values_by_file`, and `fields` are the dataset's columns in the types of
    their classes. Raises a `DataError` that names column and file if a value does not fit.
    """
    data = [field.name for field in fields if field.name not in values]
    table = read_data_file(store, values[KEY], digest, data)
    classes = {field.name: field.type for field in fields}
    stored = dict(zip(table.column_names, table.columns, strict=True))
    columns = []
    for field in target:
        if field.name in values:
            array = pa.repeat(pa.scalar(values[field.name], classes.get(field.name)), len(table))
        elif field.name in stored and not pat.is_null(classes[field.name]):
            column = stored[field.name]
            array = _converted(store, values[KEY], column, field, classes[field.name])
        else:
            array = pa.nulls(len(table))
        columns.append(array.cast(field.type))
    return pa.Table.from_arrays(columns, schema=target)


def _converted(
    store: ObjectStore, key: str, values: pa.ChunkedArray, target: pa.Field, container: pa.DataType
) -> pa.Array:
    try:
        return to_container(values, container).cast(target.type)
    except (DataError, pa.ArrowInvalid) as error:
        raise misfit(store, key, target.name, error) from error


def misfit(store: ObjectStore, key: str, column: str, reason: Exception) -> DataError:
    """The error for a value of a file that its column cannot hold."""
    said = str(reason).rstrip(".")
    return DataError(
        f"Column `{column}` of the file {store.shown(key)} of {store.url} has a value that does "
        f"not fit: {said}. Leave the column out, or rewrite the file with values that fit."
    )
