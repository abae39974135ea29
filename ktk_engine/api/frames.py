"""Rows as Python programs have them: frames of any library that knows Arrow, or of Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

import pyarrow as pa

from ktk_engine.cube.dataset_uuid import dataset_uuid
from ktk_engine.errors import DataError, KtkError
from ktk_engine.warehouse.returned_rows import is_of, refuse_repeated, table_of_pandas
from ktk_engine.write.rows import ArrowRows, Rows

Frame = Any
"""A pandas DataFrame, an Arrow table, batch, reader or dataset of files, anything else with
`__arrow_c_stream__` (Polars, DuckDB), an iterable of these, which is not gathered, or a Spark
DataFrame."""

Metadata = Mapping[str, Mapping[str, Any]]
"""What users note about datasets, by their ids: any JSON values, under names of their own."""


@contextmanager
def explaining_fixes(*frames: Frame) -> Iterator[None]:
    """Say what the fixes in errors of a block call `table`, if rows came from pandas."""
    try:
        yield
    except KtkError as error:
        if "table[" not in str(error) or not any(is_of("pandas", frame) for frame in frames):
            raise
        said = "\nHere, `table` is the frame in Arrow: table = pa.table(df)"
        raise error.with_message(error.message, said).with_traceback(
            error.__traceback__
        ) from error.__cause__


def rows_by_dataset(cube: str, datasets: Mapping[str, Frame]) -> dict[str, Rows]:
    """Take the rows of some datasets of a cube; see `rows_of`."""
    if not isinstance(datasets, Mapping):
        raise DataError(
            f"Cube {cube}: give the rows of each dataset by its id, as a mapping, not a "
            f"{type(datasets).__name__}. Nothing was written."
        )
    return {name: rows_of(dataset_uuid(cube, name), frame) for name, frame in datasets.items()}


def rows_of(name: str, frame: Frame) -> Rows:
    """Take rows as they are; nothing is read yet.

    Args:
        name: the dataset, for messages.
        frame: the rows.

    Raises:
        DataError: it is not a frame, or has a column that Arrow cannot hold.
    """
    if isinstance(frame, ArrowRows):
        rows: Rows = frame
    elif isinstance(frame, pa.RecordBatch):
        rows = pa.Table.from_batches([frame])
    elif is_of("pandas", frame):
        rows = table_of_pandas(frame, f"Dataset {name}: the pandas frame")
    elif is_of("pyspark.sql", frame):
        rows = frame
    elif _is_arrow_dataset(frame):
        rows = frame.scanner().to_reader()
    elif hasattr(frame, "__arrow_c_stream__"):
        if is_of("polars", frame):
            _refuse_objects(name, frame)
        rows = _of_stream(name, frame)
    elif _is_iterable_of_frames(frame):
        rows = _of_parts(name, iter(frame))
    else:
        raise _no_frame(name, frame)
    if isinstance(rows, ArrowRows):
        refuse_repeated(rows.schema.names, f"Dataset {name}")
    return rows


def _no_frame(name: str, frame: Frame) -> DataError:
    collected = " Give what its collect() returns." if type(frame).__name__ == "LazyFrame" else ""
    return DataError(
        f"Dataset {name}: rows must be a frame of pandas, Arrow, Polars, DuckDB or Spark, or an "
        f"iterable of such frames, but are of type {type(frame).__name__}.{collected} Nothing was "
        "written."
    )


def _is_arrow_dataset(frame: object) -> bool:
    """Whether it is one of `pyarrow.dataset`, which is not imported to find out."""
    dataset = sys.modules.get("pyarrow.dataset")
    return dataset is not None and isinstance(frame, dataset.Dataset)


def _refuse_objects(name: str, frame: Any) -> None:
    """Refuse Python objects, which Polars streams as their addresses in memory."""
    if found := [column for column, dtype in frame.schema.items() if str(dtype) == "Object"]:
        raise DataError(
            f"Dataset {name}: column `{found[0]}` of the Polars frame holds Python objects, which "
            "Arrow does not know. Convert them to strings, or to another Polars type. Nothing "
            "was written."
        )


def _of_stream(name: str, frame: Frame) -> pa.RecordBatchReader:
    """A frame of a library that knows Arrow; a column of one (a Series) streams no rows."""
    try:
        return pa.RecordBatchReader.from_stream(frame)
    except pa.ArrowInvalid as error:
        if "non-struct" in str(error):
            raise _no_frame(name, frame) from error
        raise DataError(
            f"Dataset {name}: a column of the frame has a type that Arrow does not know: {error}. "
            "Cast it first, for instance integers of 128 bits to a decimal. Nothing was written."
        ) from error


def _is_iterable_of_frames(frame: object) -> bool:
    """Whether it may be: text, mappings and columns (a Series, an array) hold no frames."""
    held = isinstance(frame, str | bytes | Mapping) or hasattr(frame, "__array__")
    return isinstance(frame, Iterable) and not held


def _of_parts(name: str, parts: Iterator[Frame]) -> ArrowRows:
    """Frames after one another; all have the columns of the first."""
    first = next(parts, None)
    if first is None:
        raise DataError(
            f"Dataset {name}: an iterable without frames has no columns. Give an empty frame "
            "instead. Nothing was written."
        )
    start = rows_of(name, first)
    if not isinstance(start, ArrowRows):
        raise DataError(
            f"Dataset {name}: give one Spark frame: unite them first. Nothing was written."
        )
    schema = start.schema.remove_metadata()

    def batches() -> Iterator[pa.RecordBatch]:
        others = (rows_of(name, part) for part in parts)
        for rows in chain([start], others):
            for batch in rows.to_batches() if isinstance(rows, pa.Table) else rows:
                yield _as(name, batch, schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _as(name: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the columns of the first frame; values do not change."""
    if set(batch.schema.names) != set(schema.names):
        raise DataError(
            f"Dataset {name}: a frame has the columns {', '.join(batch.schema.names)}, the first "
            f"one {', '.join(schema.names)}. Nothing was committed."
        )
    try:
        return batch.select(schema.names).replace_schema_metadata().cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"Dataset {name}: a frame does not have the types of the first one: {error}. Nothing "
            "was committed."
        ) from error
