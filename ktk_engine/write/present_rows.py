"""Reads rows of a dataset in this process, to write them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ktk_engine.files.footers import FooterCache
from ktk_engine.files.physical_schemas import stored_schema
from ktk_engine.local.answer import LocalEngine
from ktk_engine.log.state import State
from ktk_engine.plan.plan_dataset import plan_dataset
from ktk_engine.snapshot.snapshot import Snapshot


def present_rows(state: State, part: Snapshot, footers: FooterCache) -> pa.RecordBatchReader:
    """Read the rows that readers see, in the types of the files; see `present_batches`."""
    schema = stored_schema(state.store, footers, part, part.files)
    return in_types(present_batches(state, part, footers), schema)


def present_batches(state: State, part: Snapshot, footers: FooterCache) -> Iterator[pa.RecordBatch]:
    """Read the rows that readers see, in the container types of their classes and in any order.

    Only a few pieces are in memory at a time. Raises a `LocalEngineError` if one does not fit.
    """
    if not part.files.num_rows:
        return iter(())
    return LocalEngine(state.store, footers).batches(plan_dataset(part, state.version))


def in_types(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatchReader:
    """Cast rows, with at least the schema's columns, to the types of files."""

    def cast() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch]).select(schema.names)
            yield from table.cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, cast())
