"""Merges few rows into small files without Spark, whose jobs take longer than the merge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.files.read_rows import read_rows
from ktk_engine.spark.arrow_types import arrow_schema, spark_schema
from ktk_engine.spark.read.few_rows import few_rows
from ktk_engine.write.affected_files import cell_columns
from ktk_engine.write.rewrite.rewrite import Rewrite

MAXIMUM_BYTES = 32 << 20  # of the files, and of the new rows
MAXIMUM_VALUES = 10_000_000  # in the files: a small one may hold many that are alike
_OLD, _NEW = "__ktk_old", "__ktk_new"


def merge_in_memory(
    rewrite: Rewrite, files: pa.Table, keys: Sequence[str], updated: Sequence[str] | None
) -> pa.Table | None:
    """Replace rows of some files by new ones of the same key, as `merge_rows` does.

    Args:
        rewrite: the dataset and the new rows, which are persisted and computed.
        files: the files whose rows may be replaced.
        keys: columns that tell rows apart; null matches nothing.
        updated: columns that take the new value in a replaced row, where each key is in one
            new row; None replaces the row whole.

    Returns:
        The rows of the files after the merge. None where that is Spark's: there is too much,
        rows have cells or constraints, or Arrow compares the keys in another way.
    """
    if rewrite.target.constraints or cell_columns(rewrite.base):
        return None
    if not is_small(files, len(rewrite.kept)):
        return None
    schema = common_schema(rewrite)
    if schema is None or any(is_sparks_own(schema.field(key).type) for key in keys):
        return None
    new = few_rows(rewrite.new, MAXIMUM_BYTES)
    if new is None:
        return None
    types = old_types(rewrite)
    old = read_rows(rewrite.scanner.store, rewrite.base, files, rewrite.kept, types)
    return _merged(old, new.cast(schema), keys, updated)


def is_small(files: pa.Table, columns: int) -> bool:
    """Whether files have few rows for so many columns; none, or of unknown size, are not."""
    if not files.num_rows or files["bytes"].null_count or files["rows"].null_count:
        return False
    rows, size = pc.sum(files["rows"]).as_py(), pc.sum(files["bytes"]).as_py()
    return bool(size <= MAXIMUM_BYTES and rows * columns <= MAXIMUM_VALUES)


def old_types(rewrite: Rewrite) -> pa.Schema:
    """The old columns that are stored on, in the types in which Spark would give them."""
    return arrow_schema(spark_schema(rewrite.base.schema.field(name) for name in rewrite.kept))


def common_schema(rewrite: Rewrite) -> pa.Schema | None:
    """The new rows' schema with the types of the old rows; None where Arrow cannot give it."""
    old = old_types(rewrite)
    new = pa.schema([_widened(field, old) for field in arrow_schema(rewrite.new.schema)])
    shared = (name for name in new.names if name in old.names)
    return new if all(new.field(name).equals(old.field(name)) for name in shared) else None


def _widened(field: pa.Field, old: pa.Schema) -> pa.Field:
    """A new column with the type of the old one, where Spark casts it to that."""
    if field.name not in old.names:
        return field
    ours, theirs = field.type, old.field(field.name).type
    integers = pat.is_signed_integer(ours) and pat.is_int64(theirs)
    decimals = pat.is_decimal(ours) and pat.is_decimal(theirs)
    if integers or (decimals and ours.scale == theirs.scale and ours.precision <= theirs.precision):
        return field.with_type(theirs)
    return field


def is_sparks_own(t: pa.DataType) -> bool:
    """To Arrow, NaN differs from NaN and -0.0 from 0.0, and it joins no nested values."""
    return bool(pat.is_floating(t) or pat.is_nested(t) or pat.is_null(t))


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
    columns = [
        rows[name].take(taken if name in updated and name in new.column_names else own)
        for name in rows.column_names
    ]
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
