"""Rows to be written, in Spark or in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from ktk_engine.errors import ConfigurationError
from ktk_engine.files.write_job import WriteJob
from ktk_engine.files.write_table import write_table
from ktk_engine.files.written_files import WrittenFiles
from ktk_engine.gate.constraint import Constraint
from ktk_engine.gate.spelling import spelled, stored_names
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.state import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ArrowRows: TypeAlias = pa.Table | pa.RecordBatchReader
# A reader is read once; its rows need not fit into memory.
Rows: TypeAlias = "DataFrame | ArrowRows"


def schema_of(rows: Rows) -> pa.Schema:
    """The columns of rows, in Arrow's types."""
    if isinstance(rows, ArrowRows):
        return rows.schema
    from ktk_engine.spark.arrow_types import arrow_schema
    from ktk_engine.spark.session.spark_job import spark_job

    with spark_job():  # Spark Connect asks its server
        return arrow_schema(rows.schema)


def names_of_columns(rows: Rows) -> list[str]:
    """The names of the columns of rows, in order."""
    if isinstance(rows, ArrowRows):
        return list(rows.schema.names)
    from ktk_engine.spark.session.spark_job import spark_job

    with spark_job():
        return list(rows.columns)


def renamed(rows: Rows, names: Mapping[str, str]) -> Rows:
    """Rename columns; names that are not a key stay."""
    if not names:
        return rows
    new = [names.get(name, name) for name in names_of_columns(rows)]
    if isinstance(rows, pa.Table):
        return rows.rename_columns(new)
    if isinstance(rows, pa.RecordBatchReader):
        schema = pa.schema([f.with_name(n) for f, n in zip(rows.schema, new, strict=True)])
        batches = (pa.RecordBatch.from_arrays(b.columns, schema=schema) for b in rows)
        return pa.RecordBatchReader.from_batches(schema, batches)
    return rows.toDF(*new)


def selected(rows: Rows, names: Sequence[str]) -> Rows:
    """Some columns of rows in memory or in Spark."""
    if isinstance(rows, pa.Table):
        return rows.select(names)
    from ktk_engine.spark.client.client import select_names

    return select_names(rows, names)


def as_stored(
    rows: Rows,
    target: WriteRequest,
    state: State,
) -> tuple[Rows, WriteRequest]:
    """Spell the columns of rows, and those that a target names, as they are stored.

    Fields of structs get the stored order. See `stored_names`.
    """
    columns, datasets = names_of_columns(rows), {**target.external, **state.snapshots_by_id()}
    names = stored_names(target, columns, datasets)
    rows = renamed(rows, names)
    target = spelled(target, [names.get(name, name) for name in columns])
    if isinstance(rows, ArrowRows):
        return rows, target
    from ktk_engine.spark.write.nested_columns import with_known_parts

    own = None if target.full_refresh else datasets.get(target.dataset)
    known = {} if own is None else {item.name: item.type for item in own.schema}
    return with_known_parts(rows, {**known, **target.declared}), target


def check_constraints(constraints: Sequence[Constraint], rows: Rows) -> None:
    """Refuse constraints that do not fit the columns, before anything is written.

    Raises a `ConfigurationError` for a missing column, an expression that Spark does not
    understand, or rows that are not in Spark.
    """
    if not constraints or (isinstance(rows, pa.Table) and not rows.num_rows):
        return
    if isinstance(rows, ArrowRows):
        raise ConfigurationError(
            "Spark verifies constraints: give the rows as a Spark DataFrame. Nothing was written."
        )
    from ktk_engine.spark.write.rules import check_rule

    for constraint in constraints:
        missing = [name for name in constraint.columns if name not in rows.columns]
        if missing:
            raise ConfigurationError(
                f"The {constraint} names {', '.join(missing)}, which the rows lack. They have: "
                f"{', '.join(rows.columns)}. Nothing was written."
            )
        for rule in constraint.rules:
            try:
                check_rule(rows, rule)
            except ConfigurationError as error:
                raise ConfigurationError(error, " Nothing was written.") from error


def write_parquet(rows: Rows, job: WriteJob) -> WrittenFiles:
    """Write rows as the files of a job: Arrow rows in this process, others in Spark's tasks."""
    if isinstance(rows, ArrowRows):
        return write_table(rows, job)
    from ktk_engine.spark.write.write_frame import write_frame  # takes half a second

    return write_frame(rows, job)
