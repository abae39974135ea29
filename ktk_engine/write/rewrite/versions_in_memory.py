"""Keeps few versions in small files without Spark, whose jobs take longer than the rest."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.files.read_rows import read_rows
from ktk_engine.plan.key_conditions import key_conditions
from ktk_engine.spark.read.few_rows import few_rows
from ktk_engine.spark.write.version_rows import CHANGE_TYPE
from ktk_engine.write.affected_files import cell_columns
from ktk_engine.write.retained import Conditions
from ktk_engine.write.rewrite.affected_rows import NewKeys
from ktk_engine.write.rewrite.merge_in_memory import (
    MAXIMUM_BYTES,
    common_schema,
    is_small,
    is_sparks_own,
    old_types,
)
from ktk_engine.write.rewrite.rewrite import Rewrite
from ktk_engine.write.rewrite.versions import Versions
from ktk_engine.write.write_result import WriteResult

CHANGED_ROWS = 10_000


def changed_rows(changes: pa.Table, *kinds: str) -> pa.Table:
    """The rows with one of some kinds of change."""
    return changes.filter(pc.is_in(changes[CHANGE_TYPE], value_set=pa.array(kinds)))


def versions_in_memory(
    rewrite: Rewrite,
    by: Versions,
    changes: pa.Table,
    ended: NewKeys,
    added: NewKeys,
    current: Condition,
) -> tuple[WriteResult, int] | None:
    """Close versions and add others, as `merge_versions` does.

    Args:
        rewrite: the dataset and the new versions, which are persisted and computed.
        by: the columns of versions.
        changes: of dbt's staging table, the kinds of change, and the ids and times of versions.
        ended: the ids of closed versions.
        added: the ids of new ones, and since when they hold.
        current: what a version fulfils that holds now.

    Returns:
        What was written, and how many versions were closed. None where that is Spark's: there is
        too much, rows have cells or constraints, an id is taken, or versions of one id cannot be
        told apart.
    """
    base, schema, types = rewrite.base, common_schema(rewrite), old_types(rewrite)
    if rewrite.target.constraints or cell_columns(base) or schema is None:
        return None
    if any(is_sparks_own(changes.schema.field(name).type) for name in added.values.column_names):
        return None
    conditions, taken = [*ended.conditions(base), current], added.conditions(base)
    closing, same = rewrite.files(conditions), rewrite.files(taken)
    for files in (closing, same):
        if files.num_rows and not is_small(files, len(rewrite.kept)):
            return None
    closed = changed_rows(changes, "update", "delete").select([by.scd_id, by.valid_to])
    if not (_fits(closed, types) and _fits(added.values, types)):
        return None
    if _are_there(rewrite, same, added.values):
        return None
    old = _old_rows(rewrite, closing)
    found = old.filter(_is_closed(old, closed, by, current))
    if found.num_rows > ended.row_count:
        return None
    new = few_rows(rewrite.new, MAXIMUM_BYTES) if added.row_count else schema.empty_table()
    if new is None:
        return None
    touched = _files_of(rewrite, found, conditions, by)
    rows = _with_end(_old_rows(rewrite, touched), closed, by, current)
    rows = pa.concat_tables([rows, new.cast(schema)], promote_options="default")
    reads = ((current,), taken) if added.row_count else ((current,),)
    return rewrite.commit(rows, touched, reads, added.row_count, True), found.num_rows


def _are_there(rewrite: Rewrite, files: pa.Table, keys: pa.Table) -> bool:
    """Whether rows of some files have one of the keys."""
    if not files.num_rows:
        return False
    old = read_rows(rewrite.scanner.store, rewrite.base, files, keys.column_names, keys.schema)
    return bool(old.join(keys, keys.column_names, join_type="inner").num_rows)


def _fits(rows: pa.Table, types: pa.Schema) -> bool:
    return all(field.type.equals(types.field(field.name).type) for field in rows.schema)


def _old_rows(rewrite: Rewrite, files: pa.Table) -> pa.Table:
    types = old_types(rewrite)
    if not files.num_rows:
        return types.empty_table()
    return read_rows(rewrite.scanner.store, rewrite.base, files, types.names, types)


def _is_closed(
    old: pa.Table, closed: pa.Table, by: Versions, current: Condition
) -> pa.ChunkedArray:
    """Which old rows hold now and are closed."""
    holds = pc.fill_null(evaluate(current, old), False)
    return pc.and_(pc.is_in(old[by.scd_id], value_set=closed[by.scd_id], skip_nulls=True), holds)


def _files_of(rewrite: Rewrite, found: pa.Table, conditions: Conditions, by: Versions) -> pa.Table:
    """The files that can hold the versions to be closed, by their places in the layout."""
    base = rewrite.base
    names = dict.fromkeys((*base.partition_keys, *base.indices, by.valid_from))
    known = [n for n in names if n in found.column_names and not found[n].null_count]
    return rewrite.files([*conditions, *key_conditions(base.schema, found.select(known))])


def _with_end(old: pa.Table, closed: pa.Table, by: Versions, current: Condition) -> pa.Table:
    """Old rows; those that are closed have their end."""
    places = pc.index_in(old[by.scd_id], value_set=closed[by.scd_id], skip_nulls=True)
    ends = pc.if_else(
        _is_closed(old, closed, by, current), closed[by.valid_to].take(places), old[by.valid_to]
    )
    return old.set_column(old.schema.get_field_index(by.valid_to), by.valid_to, ends)
