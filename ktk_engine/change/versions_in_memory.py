"""Keeps few versions in small files without Spark, whose jobs take longer than the rest."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import md5

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.change.by_arrow import (
    common_schema,
    free_cells,
    needs_spark,
)
from ktk_engine.change.old_rows import old_rows, old_types
from ktk_engine.change.stage import Rewrite
from ktk_engine.change.versions import Versions
from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.plan.key_conditions import key_conditions
from ktk_engine.spark.read.few_rows import few_rows
from ktk_engine.spark.write.version_rows import CHANGE_TYPE
from ktk_engine.write.affected_files import cell_columns
from ktk_engine.write.affected_rows import NewKeys
from ktk_engine.write.retained import Conditions
from ktk_engine.write.small_files import MAXIMUM_BYTES, is_small, is_sparks_own
from ktk_engine.write.write_result import WriteResult

CHANGED_ROWS = 10_000


@dataclass(frozen=True)
class _NewRows:
    """Versions to be added.

    Attributes:
        rows: the versions.
        reads: what was read to see that their ids and cells are free.
    """

    rows: pa.Table
    reads: tuple[Conditions, ...]


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
        too much, `needs_spark`, a cell is taken, or versions of one id cannot be told apart.
    """
    base, types = rewrite.base, old_types(rewrite)
    closed = changed_rows(changes, "update", "delete").select([by.scd_id, by.valid_to])
    if not _compares_as_spark(rewrite, by, closed, added.values):
        return None
    conditions = [*ended.conditions(base), current]
    closing = rewrite.files(conditions)
    if not is_small(closing, len(types)):
        return None
    old = old_rows(rewrite, closing, types.names)
    found = old.filter(_is_closed(old, closed, by, current))
    if found.num_rows > ended.row_count:
        return None
    new = _new_rows(rewrite, by, added)
    touched = _files_of(rewrite, found, conditions, by) if closing.num_rows else closing
    if new is None or not is_small(touched, len(types)):
        return None
    old = old_rows(rewrite, touched, types.names)
    rows = [_with_end(old, closed, by, current), new.rows]
    rows = pa.concat_tables(rows, promote_options="default")
    reads = ((current,), *new.reads)
    done = rewrite.commit(rows, touched, reads, added.row_count, True, old.num_rows)
    return done, found.num_rows


def _compares_as_spark(rewrite: Rewrite, by: Versions, closed: pa.Table, added: pa.Table) -> bool:
    """Whether values are compared here as Spark does, and nothing else needs it."""
    types = old_types(rewrite)
    if common_schema(rewrite) is None or needs_spark(rewrite):
        return False
    compared = (*added.column_names, *cell_columns(rewrite.base))
    if any(is_sparks_own(types.field(name).type) for name in compared):
        return False
    is_text = pat.is_string(types.field(by.scd_id).type)
    return is_text and _fits(closed, types) and _fits(added, types)


def _new_rows(rewrite: Rewrite, by: Versions, added: NewKeys) -> _NewRows | None:
    """The new versions, in ids and cells that no other has; None where that is Spark's."""
    schema = common_schema(rewrite)
    assert schema is not None
    if not added.row_count:
        return _NewRows(schema.empty_table(), ())
    taken = added.conditions(rewrite.base)
    files, new = rewrite.files(taken), few_rows(rewrite.new, MAXIMUM_BYTES)
    if new is None or not is_small(files, len(rewrite.kept)):
        return None
    new = _with_own_ids(rewrite, by, new.cast(schema), files)
    free = free_cells(rewrite, new, ())
    return None if free is None else _NewRows(new, (taken, *free))


def _with_own_ids(rewrite: Rewrite, by: Versions, new: pa.Table, files: pa.Table) -> pa.Table:
    """Give new versions whose id an old one has the ids of `with_new_ids`."""
    key = [by.scd_id, by.valid_from]
    taken = old_rows(rewrite, files, key).join(new.select(key), key, join_type="left semi")
    now = rewrite.scanner.store.now().isoformat()
    known = pc.unique(taken[by.scd_id])
    texts = (f"{own}|{now}".encode() for own in known.to_pylist())
    own_ids = [md5(text, usedforsecurity=False).hexdigest() for text in texts]
    places = pc.index_in(new[by.scd_id], value_set=known, skip_nulls=True)
    ids = pc.coalesce(pa.array(own_ids, pa.string()).take(places), new[by.scd_id])
    place = new.schema.get_field_index(by.scd_id)
    return new.set_column(place, new.schema.field(place), ids)


def _fits(rows: pa.Table, types: pa.Schema) -> bool:
    return all(field.type.equals(types.field(field.name).type) for field in rows.schema)


def _is_closed(
    old: pa.Table, closed: pa.Table, by: Versions, current: Condition
) -> pa.ChunkedArray:
    """Which old rows hold now and are closed."""
    holds = pc.fill_null(evaluate(current, old), False)
    return pc.and_(pc.is_in(old[by.scd_id], value_set=closed[by.scd_id], skip_nulls=True), holds)


def _files_of(rewrite: Rewrite, found: pa.Table, conditions: Conditions, by: Versions) -> pa.Table:
    """The files that can hold the versions to be closed, by their places in the layout."""
    base = rewrite.base
    cells = cell_columns(base)  # what only asks for cells leaves files beside theirs alone
    names = dict.fromkeys(cells or (*base.partition_keys, *base.indices, by.valid_from))
    known = [n for n in names if n in found.column_names and not found[n].null_count]
    places = key_conditions(base.schema, found.select(known))
    return rewrite.files(places if cells else [*conditions, *places])


def _with_end(old: pa.Table, closed: pa.Table, by: Versions, current: Condition) -> pa.Table:
    """Old rows; those that are closed have their end."""
    places = pc.index_in(old[by.scd_id], value_set=closed[by.scd_id], skip_nulls=True)
    ends = pc.if_else(
        _is_closed(old, closed, by, current), closed[by.valid_to].take(places), old[by.valid_to]
    )
    return old.set_column(old.schema.get_field_index(by.valid_to), by.valid_to, ends)
