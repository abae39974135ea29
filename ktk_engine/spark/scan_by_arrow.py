"""Reads files by pyarrow: in the executors where Spark's reader cannot (spark.md 3), and here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pat
from pyspark.sql.types import LongType

from ktk_engine.format.data_file import read_data_file
from ktk_engine.format.file_digest import FileDigest
from ktk_engine.log.snapshot import PARTITION, Snapshot, check_partition_values, digests_of
from ktk_engine.spark.arrow_types import arrow_schema, spark_schema
from ktk_engine.spark.cohorts import Cohort
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.to_container import to_container

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POSITION = "__ktk_position"
_KEY = "__ktk_key"
_THREADS = 8


def scan_by_arrow(
    session: SparkSession,
    store: ObjectStore,
    snapshot: Snapshot,
    cohort: Cohort,
    columns: Sequence[str],
    with_position: bool,
) -> DataFrame:
    """Give the rows of some files.

    Args:
        session: where they are read.
        store: where they lie; goes to the executors.
        snapshot: the dataset.
        cohort: the files.
        columns: the columns to give, partition columns among them where wanted.
        with_position: add the file's position as `POSITION`.

    Returns:
        A frame with the columns in order, in the Spark types of their classes. Timestamps with
        more than microseconds are an error: nothing is cut off.
    """
    fields = [snapshot.schema.field(name) for name in columns]
    schema = spark_schema(fields)
    if with_position:
        schema = schema.add(POSITION, LongType())
    facts = _facts(snapshot, cohort.files, columns)
    if facts.num_rows == 0:
        return session.createDataFrame([], schema)
    target = arrow_schema(schema)
    known = {row[_KEY]: row for row in facts.to_pylist()}
    digests = _digests(cohort.files)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for key in batch.column(0).to_pylist():
                yield from _read(store, known[key], target, fields, digests[key]).to_batches()

    keys = session.createDataFrame(facts.select([_KEY])).repartition(min(facts.num_rows, 64))
    return keys.mapInArrow(read, schema)


def read_rows(
    store: ObjectStore, snapshot: Snapshot, files: pa.Table, columns: Sequence[str]
) -> pa.Table:
    """Read the rows of some files into this process.

    Args:
        store: where they lie.
        snapshot: the dataset.
        files: rows of `snapshot.files`, at least one.
        columns: the columns to give, partition columns among them where wanted.

    Returns:
        The columns in order, in the types in which Spark would hand them over.
    """
    fields = [snapshot.schema.field(name) for name in columns]
    target = arrow_schema(spark_schema(fields))
    known = _facts(snapshot, files, columns).to_pylist()
    digests = _digests(files)
    with ThreadPoolExecutor(min(_THREADS, len(known))) as pool:
        tables = pool.map(
            lambda values: _read(store, values, target, fields, digests[values[_KEY]]), known
        )
        return pa.concat_tables(tables)


def _facts(snapshot: Snapshot, files: pa.Table, columns: Sequence[str]) -> pa.Table:
    """What the files do not hold themselves."""
    names = [name for name in columns if name in snapshot.partition_keys]
    check_partition_values(replace(snapshot, files=files), names)
    facts = files.select(["key", "position", *(PARTITION + name for name in names)])
    return facts.rename_columns([_KEY, POSITION, *names])


def _digests(files: pa.Table) -> dict[str, FileDigest | None]:
    return dict(zip(files["key"].to_pylist(), digests_of(files), strict=True))


def _read(
    store: ObjectStore,
    values: dict[str, Any],
    target: pa.Schema,
    fields: list[pa.Field],
    digest: FileDigest | None,
) -> pa.Table:
    """Give a file's rows in the schema that Spark expects."""
    data = [field.name for field in fields if field.name not in values]
    table = read_data_file(store, values[_KEY], digest, data)
    classes = {field.name: field.type for field in fields}
    columns = []
    for field in target:
        if field.name in values:
            array = pa.repeat(pa.scalar(values[field.name], classes.get(field.name)), len(table))
        elif field.name in table.column_names and not pat.is_null(classes[field.name]):
            array = to_container(table[field.name], classes[field.name])
        else:
            array = pa.nulls(len(table))
        columns.append(array.cast(field.type))
    return pa.Table.from_arrays(columns, schema=target)
