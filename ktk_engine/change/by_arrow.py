"""Merges few rows into small files without Spark, whose jobs take longer than the merge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.change.old_rows import old_rows, old_types
from ktk_engine.change.stage import Rewrite
from ktk_engine.spark.arrow_types import arrow_schema
from ktk_engine.spark.read.few_rows import few_rows
from ktk_engine.spark.write.merge_rows import counted_keys
from ktk_engine.write.affected_files import cell_columns
from ktk_engine.write.affected_rows import NewKeys
from ktk_engine.write.retained import Conditions
from ktk_engine.write.small_files import MAXIMUM_BYTES, is_small, is_sparks_own

_OLD, _NEW = "__ktk_old", "__ktk_new"


@dataclass(frozen=True)
class MergedRows:
    """What some files hold after a merge.

    Attributes:
        rows: their rows, old and new ones.
        before: how many rows they had that readers see.
        reads: what was read beside the files, to see that the new rows' cells are free.
    """

    rows: pa.Table
    before: int
    reads: tuple[Conditions, ...]


def merge_in_memory(
    rewrite: Rewrite, files: pa.Table, keys: Sequence[str], updated: Sequence[str] | None
) -> MergedRows | None:
    """Replace rows of some files by new ones of the same key, as `merge_rows` does.

    Args:
        rewrite: the dataset and the new rows, which are persisted and computed.
        files: the files whose rows may be replaced.
        keys: columns that tell rows apart; null matches nothing.
        updated: columns that take the new value in a replaced row, where each key is in one
            new row; None replaces the row whole.

    Returns:
        The files after the merge. None where that is Spark's: there is too much, `needs_spark`,
        Arrow compares keys or cells in another way, or a cell is taken.
    """
    schema, cells = common_schema(rewrite), cell_columns(rewrite.base)
    if schema is None or needs_spark(rewrite) or not is_small(files, len(rewrite.kept)):
        return None
    if any(is_sparks_own(schema.field(key).type) for key in keys):
        return None
    new = few_rows(rewrite.new, MAXIMUM_BYTES)
    if new is None:
        return None
    new, reads = new.cast(schema), []
    if not set(keys) <= set(cells):  # else an old row with the cell has the key
        free = free_cells(rewrite, new, keys)
        if free is None:
            return None
        reads = free
    old = old_rows(rewrite, files, rewrite.kept)
    return MergedRows(_merged(old, new, keys, updated), old.num_rows, tuple(reads))


def needs_spark(rewrite: Rewrite) -> bool:
    """Whether rows are verified by Spark, or dealt by it to several files of a partition."""
    target = rewrite.target
    by_cell = bool(target.buckets) and not target.partition_by
    dealt = bool(cell_columns(rewrite.base)) and (target.num_buckets > 1 or by_cell)
    return bool(target.constraints) or dealt


def free_cells(rewrite: Rewrite, new: pa.Table, keys: Sequence[str]) -> list[Conditions] | None:
    """Look whether new rows are in a cell of an old row that stays, as `check_cells` does.

    Args:
        rewrite: the dataset.
        new: the new rows, in the types of `common_schema`.
        keys: an old row goes if it has those of a new one; without any, all of them stay.

    Returns:
        What was read for that; nothing where rows have no cells. None where that is Spark's: a
        cell is taken, so that it has to refuse the rows, there is too much, or Arrow compares the
        cells in another way.
    """
    cells = cell_columns(rewrite.base)
    if not cells:
        return []
    if any(is_sparks_own(new.schema.field(name).type) for name in cells):
        return None
    conditions = NewKeys(rewrite.new, *counted_keys(new, cells)).conditions(rewrite.base)
    files = rewrite.files(conditions)
    names = list(dict.fromkeys([*cells, *keys]))
    if not is_small(files, len(names)):
        return None
    old = old_rows(rewrite, files, names)
    stay = old.join(new.select(keys), list(keys), join_type="left anti") if keys else old
    taken = stay.join(new.select(cells), list(cells), join_type="left semi")
    return None if taken.num_rows else [conditions]


def common_schema(rewrite: Rewrite) -> pa.Schema | None:
    """The new rows' schema with the types of the old rows; None where Arrow cannot give it."""
    old = old_types(rewrite)
    new = pa.schema([_widened(field, old) for field in arrow_schema(rewrite.new.schema)])
    shared = set(new.names) & set(old.names)
    return new if all(new.field(name).equals(old.field(name)) for name in shared) else None


def _widened(field: pa.Field, old: pa.Schema) -> pa.Field:
    """A new column with the type of the old one, where Spark casts it to that."""
    if old.get_field_index(field.name) < 0:
        return field
    ours, theirs = field.type, old.field(field.name).type
    integers = pat.is_signed_integer(ours) and pat.is_int64(theirs)
    decimals = pat.is_decimal(ours) and pat.is_decimal(theirs)
    if integers or (decimals and ours.scale == theirs.scale and ours.precision <= theirs.precision):
        return field.with_type(theirs)
    return field


def _merged(
    old: pa.Table, new: pa.Table, keys: Sequence[str], updated: Sequence[str] | None
) -> pa.Table:
    """Choose each value from the old rows with the new ones after them."""
    found = _find(old, new, keys)
    rows = pa.concat_tables([old, new], promote_options="default")
    before, added = _numbers(0, old.num_rows), _numbers(old.num_rows, rows.num_rows)
    if updated is None:
        stay = before.filter(pc.is_null(found))
        return rows.take(pa.chunked_array([stay, added], pa.int64()))
    inserted = added.filter(pc.invert(pc.is_in(added, value_set=found)))
    own = pa.chunked_array([before, inserted], pa.int64())
    taken = pa.chunked_array([pc.coalesce(found, before), inserted], pa.int64())
    changed = set(updated) & set(new.column_names)
    columns = [rows[name].take(taken if name in changed else own) for name in rows.column_names]
    return pa.table(columns, schema=rows.schema)


def _find(old: pa.Table, new: pa.Table, keys: Sequence[str]) -> pa.Array:
    """For each old row, where after the old ones a new row of its key stands; else null."""
    numbers = _numbers(old.num_rows, old.num_rows + new.num_rows)
    places = new.select(keys).append_column(_NEW, numbers)
    places = places.group_by(list(keys)).aggregate([(_NEW, "min")])
    before = old.select(keys).append_column(_OLD, _numbers(0, old.num_rows))
    found = before.join(places, list(keys), join_type="left outer")
    return found.sort_by(_OLD)[f"{_NEW}_min"].combine_chunks()


def _numbers(start: int, stop: int) -> pa.Array:
    return pa.array(np.arange(start, stop, dtype=np.int64))
