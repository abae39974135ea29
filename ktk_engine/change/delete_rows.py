"""Takes rows out of a dataset in this process: only files that hold one are written again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition, conjuncts
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.files.physical_schemas import stored_schema
from ktk_engine.gate.target import Target
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.write.affected_files import affected_files
from ktk_engine.write.checked_write import check_write
from ktk_engine.write.present_rows import in_types, present_batches
from ktk_engine.write.retained import Retained
from ktk_engine.write.staging import Staging
from ktk_engine.write.write_context import WriteContext


def delete_rows(staging: Staging, uuid: str, condition: Condition, known: MetadataCache) -> None:
    """Take the rows out of a dataset for which a condition is true.

    Partition values, indices and statistics choose the files that may hold one. Where partition
    columns alone decide for all of these, whole files go and none is read.

    Args:
        staging: the commit that it is part of.
        uuid: the dataset.
        condition: on its columns.
        known: what is known of the store's files.

    Raises:
        LocalEngineError: the rows that stay in a file do not fit into memory piece by piece.
        ConditionError: a literal is of another class than its column.
    """
    state = staging.state
    base, store = state.snapshot(uuid), state.store
    parts = conjuncts(condition)
    files = affected_files(store, base, parts)
    if not files.num_rows:
        return
    stored = stored_schema(store, known.footers, base, files)
    rows: pa.Table | pa.RecordBatchReader = stored.empty_table()
    if not goes_whole(replace(base, files=files), condition):
        batches = present_batches(state, replace(base, files=files), known.footers)
        rows = in_types(_without(batches, condition), stored)
    labels = frozenset(files["label"].to_pylist())
    retained = Retained("files", labels, (tuple(parts),))
    target, context = Target.of(base), WriteContext(staging.history)
    staging.write(check_write(stored, target, state, retained, context), rows)


def goes_whole(part: Snapshot, condition: Condition) -> bool:
    """Whether the condition is true for every row of some files, by partition values alone.

    Among the affected files may be others: those that overlay cells of rows that go, and those
    with a partition value that nobody can read.
    """
    if not condition.columns <= set(part.partition_keys):
        return False
    values = part.per_column("partition.") if condition.columns else part.files
    goes = pc.fill_null(evaluate(condition, values), False)
    return bool(goes.true_count == len(goes))


def _without(batches: Iterator[pa.RecordBatch], condition: Condition) -> Iterator[pa.RecordBatch]:
    """The rows for which a condition is not true."""
    for batch in batches:
        table = pa.Table.from_batches([batch])
        goes = pc.fill_null(evaluate(condition, table), False)
        yield from table.filter(pc.invert(goes)).to_batches()
