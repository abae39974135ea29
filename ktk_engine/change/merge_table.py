"""Merges rows into a table in this process: only files that can hold a key are written again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.errors import ConfigurationError, DataError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.files.physical_schemas import stored_schema
from ktk_engine.gate.target import Target
from ktk_engine.plan.key_conditions import MAXIMUM_KEYS, bounds_of, key_conditions
from ktk_engine.types.identifier import find_names
from ktk_engine.types.refusal import Problem, refusal
from ktk_engine.types.to_container import to_container
from ktk_engine.types.type_class import class_name, normalize
from ktk_engine.write.affected_files import affected_files
from ktk_engine.write.checked_write import check_write
from ktk_engine.write.present_rows import in_types, present_batches
from ktk_engine.write.retained import Retained
from ktk_engine.write.rows import as_stored
from ktk_engine.write.staging import Staging
from ktk_engine.write.write_context import WriteContext

_COUNT = "__ktk_count"


def merge_table(
    staging: Staging, target: Target, rows: pa.Table, key: Sequence[str], known: MetadataCache
) -> None:
    """Let new rows take the place of the rows with their key; the others are added.

    Args:
        staging: the commit that it is part of.
        target: a table that exists.
        rows: the new rows, with all columns of the table.
        key: columns that tell rows apart; null matches nothing.
        known: what is known of the store's files.

    Raises:
        DataError: a key occurs in several new rows; nothing was written.
        ConfigurationError: a key column is missing or of a class that cannot be one.
        TypeClassError: see `build`.
    """
    state = staging.state
    base, store = state.snapshot(target.uuid), state.store
    context = WriteContext(staging.history)
    named, target = as_stored(rows, target, state, keeps_rows=True)
    assert isinstance(named, pa.Table)
    rows, key = named, find_names(key, named.column_names)
    _check_key(target, key, rows.schema, base.schema)
    write = check_write(rows.schema, target, state, Retained("append"), context)
    keys = _distinct(target, rows, key)
    bounds = bounds_of(keys) if keys.num_rows > MAXIMUM_KEYS else None
    conditions = tuple(key_conditions(base.schema, keys, bounds))
    files = affected_files(store, base, conditions)
    schema = _joined(rows.schema, stored_schema(store, known.footers, base, files))
    old = present_batches(state, replace(base, files=files), known.footers)
    new = _cast(rows, schema).to_batches()
    labels = frozenset(files["label"].to_pylist())
    write = replace(
        write,
        retained=Retained("files", labels, (conditions,)),
        gate=write.gate.of_rows(target, schema),
    )
    kept = in_types(_others(old, keys), schema)
    both = pa.RecordBatchReader.from_batches(schema, chain(kept, new))
    staging.write(write, both)


def _check_key(target: Target, key: Sequence[str], new: pa.Schema, old: pa.Schema) -> None:
    if not key:
        raise ConfigurationError(
            f"Table {target.uuid}: a merge needs a key, the columns that tell rows apart. Nothing "
            "was written."
        )
    for name in key:
        if name not in new.names or name not in old.names:
            raise ConfigurationError(
                f"Table {target.uuid}: key names `{name}`, which is not a column of both the table "
                f"and the new rows. The table has: {', '.join(old.names)}. Nothing was written."
            )
        found = old.field(name).type
        if pat.is_floating(found) or pat.is_nested(found) or pat.is_null(found):
            raise ConfigurationError(
                f"Table {target.uuid}: `{name}` is of class {class_name(found)}, whose values "
                "cannot be a key: they have no exact equality. Nothing was written."
            )


def _distinct(target: Target, rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """The keys without nulls, each once."""
    found = pa.table({name: to_container(rows[name]) for name in key})
    counted = found.append_column(_COUNT, pa.repeat(1, len(found)))
    counted = counted.group_by(list(key)).aggregate([(_COUNT, "sum")])
    whole = pc.is_valid(counted[key[0]])
    for name in key[1:]:
        whole = pc.and_(whole, pc.is_valid(counted[name]))
    counted = counted.filter(whole)
    twice = counted.filter(pc.greater(counted[f"{_COUNT}_sum"], 1))
    if twice.num_rows:
        first = twice.select(list(key)).slice(0, 1).to_pylist()[0]
        example = ", ".join(f"{name}={value!r}" for name, value in first.items())
        problem = Problem(
            f"Several new rows have one key ({', '.join(key)}).",
            "Keep one row of each key.",
            f"{example} occurs {twice[f'{_COUNT}_sum'][0]} times",
        )
        raise DataError(refusal(target.uuid, [problem]))
    return counted.select(list(key))


def _joined(new: pa.Schema, stored: pa.Schema) -> pa.Schema:
    """Types that hold old and new values: those of the files where both agree."""
    fields = []
    for field in new:
        old = stored.field(field.name).type
        both = old if field.type.equals(old) or pat.is_null(field.type) else normalize(old)
        fields.append(field.with_type(both).with_nullable(True))
    return pa.schema(fields)


def _cast(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = []
    for field in schema:
        column = rows[field.name]
        same = column.type.equals(field.type)
        columns.append(column if same else to_container(column, field.type))
    return pa.table(columns, schema=schema)


def _others(batches: Iterator[pa.RecordBatch], keys: pa.Table) -> Iterator[pa.RecordBatch]:
    """The old rows whose key no new row has."""
    names = keys.column_names
    for batch in batches:
        table = pa.Table.from_batches([batch])
        if len(names) == 1:
            gone = pc.is_in(table[names[0]], value_set=keys[names[0]].combine_chunks())
            kept = table.filter(pc.invert(gone))
        else:
            kept = _without_keys(table, keys)
        yield from kept.to_batches()


def _without_keys(table: pa.Table, keys: pa.Table) -> pa.Table:
    place = "__ktk_place"
    places = table.select(keys.column_names).append_column(place, pa.array(np.arange(len(table))))
    stay = places.join(keys, keys.column_names, join_type="left anti")[place]
    return table.take(stay)
