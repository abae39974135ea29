"""Reads all rows of a dataset in this process, to write them again in another form."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.files.physical_schemas import stored_schema
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.log.state import State
from ktk_engine.merge.answer import LocalEngine
from ktk_engine.plan.cube_query import CubeQuery
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.plan_dataset import plan_dataset
from ktk_engine.plan.plan_table import LoadedTable


def present_rows(state: State, base: Snapshot, known: MetadataCache) -> pa.RecordBatchReader:
    """Read the rows that readers see, of each cell the last, in the types of the files.

    Args:
        state: the dataset's scope.
        base: the dataset.
        known: what is known of the store's files.

    Returns:
        Its columns in order, in no certain order of rows; a few pieces are in memory at a time.

    Raises:
        LocalEngineError: a piece does not fit into memory.
    """
    schema = stored_schema(state.store, known.footers, base, base.files)
    if not base.files.num_rows:
        return schema.empty_table().to_reader()
    batches = LocalEngine(state.store, known.footers).batches(_plan(state, base, known))
    return pa.RecordBatchReader.from_batches(schema, _cast(batches, schema))


def _plan(state: State, base: Snapshot, known: MetadataCache) -> Plan:
    if base.dimension_columns:
        return plan_dataset(base, state.version)
    return LoadedTable(state, base, known).answer(CubeQuery())


def _cast(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from pa.Table.from_batches([batch]).select(schema.names).cast(schema).to_batches()
