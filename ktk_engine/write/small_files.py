"""Which files are small enough to be compared in this process, with Spark's results."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.files.footers import FooterCache
from ktk_engine.files.read_rows import read_rows
from ktk_engine.local.answer import LocalEngine
from ktk_engine.plan.plan_dataset import plan_dataset
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore

MAXIMUM_BYTES = 32 << 20  # of the files, and of new rows
MAXIMUM_VALUES = 10_000_000  # in the files: a small file may hold many equal ones


def is_small(files: pa.Table, columns: int) -> bool:
    """Whether files have few values in this number of columns; unknown sizes are not small."""
    if files["bytes"].null_count or files["rows"].null_count:
        return False
    rows, size = (pc.sum(files[name]).as_py() or 0 for name in ("rows", "bytes"))
    return bool(size <= MAXIMUM_BYTES and rows * columns <= MAXIMUM_VALUES)


def arrow_compares_unlike_spark(t: pa.DataType) -> bool:
    """To Arrow, NaN differs from NaN and -0.0 from 0.0, and it joins no nested values."""
    return bool(pat.is_floating(t) or pat.is_nested(t) or pat.is_null(t))


def types_in_spark(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """Columns of a dataset in the types that Spark gives to Arrow."""
    from ktk_engine.spark.arrow_types import arrow_schema, spark_schema

    return arrow_schema(spark_schema(schema.field(name) for name in names))


def small_rows(
    store: ObjectStore, footers: FooterCache, part: Snapshot, version: int, names: Sequence[str]
) -> pa.Table:
    """Read the rows that readers see, in the types of `types_in_spark`.

    Raises a `DataError` if a value is finer than its class.
    """
    schema = types_in_spark(part.schema, names)
    if not part.files.num_rows:
        return schema.empty_table()
    plan = plan_dataset(part, version)
    if plan.datasets[0].overlaid:
        return LocalEngine(store, footers, limit=sys.maxsize).table(plan, names).cast(schema)
    return read_rows(store, part, part.files, names, schema)
