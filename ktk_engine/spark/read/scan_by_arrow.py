"""Reads files by pyarrow in the executors, where Spark's reader cannot.

See docs/design/reading.md, Cohorts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark  # noqa: F401
from pyspark.sql.types import LongType

from ktk_engine.files.read_rows import KEY, POSITION, digests_by_key, read_file, values_by_file
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.spark.arrow_types import arrow_schema, spark_schema
from ktk_engine.spark.frames import empty_frame, frame_of_table
from ktk_engine.spark.read.cohorts import Cohort
from ktk_engine.spark.session.executors import map_in_workers
from ktk_engine.store.interface import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    facts = values_by_file(snapshot, cohort.files, columns)
    if facts.num_rows == 0:
        return empty_frame(session, schema)
    target = arrow_schema(schema)
    known = {row[KEY]: row for row in facts.to_pylist()}
    digests = digests_by_key(cohort.files)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for key in batch.column(0).to_pylist():
                yield from read_file(store, known[key], target, fields, digests[key]).to_batches()

    keys = frame_of_table(session, facts.select([KEY])).repartition(min(facts.num_rows, 64))
    return map_in_workers(keys, read, schema)
