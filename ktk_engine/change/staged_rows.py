"""Changes of single rows that Python programs make, by Arrow, as a part of one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from ktk_engine.change.by_arrow import NotByArrowError, accepted, check_exact
from ktk_engine.change.merge import MergeBy, check_known, check_unique, spelled_by
from ktk_engine.change.replacement import Replacement
from ktk_engine.change.stage import Stage, start_stage
from ktk_engine.conditions.condition import Condition, conjuncts
from ktk_engine.errors import ConfigurationError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.files.physical_schemas import stored_schema
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.types.to_container import to_container
from ktk_engine.write.affected_files import affected_files
from ktk_engine.write.new_keys import find_keys
from ktk_engine.write.rows import as_stored
from ktk_engine.write.staging import Staging


def merge_table(
    staging: Staging, target: WriteRequest, rows: pa.Table, key: Sequence[str], cache: MetadataCache
) -> None:
    """Replace the rows of an existing table with the new rows' keys, and add the others.

    The new rows have all columns; null keys match nothing. Raises a `DataError` for a repeated key,
    and a `ConfigurationError` if a key column is missing or of an invalid class, or the table has
    constraints. For other errors see `build`.
    """
    state = staging.state
    named, target = as_stored(rows, replace(target, mode="files"), state)
    assert isinstance(named, pa.Table)
    by = spelled_by(MergeBy(tuple(key)), target, named.column_names, state)
    stage = start_stage(named, target, state, cache.footers)
    check_known(target, stage.base, by.unique_key)
    try:
        check_exact(stage.base.schema, by.unique_key)
    except NotByArrowError as error:
        raise ConfigurationError(f"Table {target.uuid}: {error}. Nothing was written.") from error
    keys = find_keys(pa.table({n: to_container(named[n]) for n in by.unique_key}), by.unique_key)
    check_unique(target, keys, by)
    conditions = keys.conditions(stage.base)
    _replace(staging, stage, Replacement(by.unique_key), stage.files(conditions), conditions)


def delete_rows(staging: Staging, uuid: str, condition: Condition, cache: MetadataCache) -> None:
    """Delete the rows of a dataset for which a condition is true.

    Partition values, indexes and statistics choose the files to look at. Where partition columns
    alone decide, whole files go without being read. Raises a `LocalEngineError` if a piece does not
    fit into memory, and a `ConditionError` for a literal of another class than its column.
    """
    state, conditions = staging.state, conjuncts(condition)
    base = state.snapshot(uuid)
    files = affected_files(state.store, base, conditions)
    if not files.num_rows:
        staging.looked_at(uuid, conditions)
        return
    nothing = stored_schema(state.store, cache.footers, base, files).empty_table()
    stage = start_stage(nothing, WriteRequest.of(base), state, cache.footers)
    _replace(staging, stage, Replacement(where=condition), files, conditions)


def _replace(
    staging: Staging,
    stage: Stage,
    change: Replacement,
    files: pa.Table,
    conditions: Sequence[Condition],
) -> None:
    executor = accepted(stage, stage.types(files), files, change)
    rows, _ = executor.replaced(change, files, executor.new)
    stage.put_in(staging, rows, executor.types, files, (tuple(conditions),))
