"""Carries out changes of few rows in this process, where Spark's jobs would take longer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.change.replacement import Replacement
from ktk_engine.change.stage import Stage
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.errors import DataError
from ktk_engine.types.arrow_cast import plain_values
from ktk_engine.types.to_container import to_container
from ktk_engine.types.type_class import class_name, normalize, plain_type
from ktk_engine.write.present_rows import in_types, present_batches
from ktk_engine.write.rows import ArrowRows
from ktk_engine.write.small_files import (
    MAXIMUM_BYTES,
    arrow_compares_unlike_spark,
    is_small,
    small_rows,
)

_PLACE, _FOUND = "__ktk_place", "__ktk_found"


class Reason(Enum):
    """Why Spark has to carry out a change."""

    CLASS = "values of some classes have no exact equality"
    CELL = "a cell exists already, and Spark says which"
    CONSTRAINTS = "Spark verifies constraints"
    FILES = "rows of a partition go to several files"
    SIZE = "there are more rows than this process should read"
    TYPES = "Spark casts values as Arrow does not"


class NotByArrowError(Exception):
    """Arrow does not accept a change; nothing was written."""

    def __init__(self, reason: Reason, about: str = "") -> None:
        super().__init__(about or reason.value)
        self.reason = reason


@dataclass(frozen=True)
class ByArrow:
    """Rows of a change in Arrow; `accepted` makes it."""

    stage: Stage
    types: pa.Schema  # the columns as they are to be stored
    new: pa.Table  # the new rows, in these types
    is_bounded: bool  # Spark takes over where rows are many; else they are streamed

    def rows(self, files: pa.Table, names: Sequence[str]) -> pa.Table:
        """Columns of the rows that readers see in some files."""
        if not is_small(files, len(names)):
            raise NotByArrowError(Reason.SIZE)
        stage, known = self.stage, self.types
        part, version = replace(stage.base, file_table=files), stage.write.state.version
        rows = small_rows(stage.store, stage.footers, part, version, names)
        there = set(known.names)
        fields = [known.field(f.name) if f.name in there else f for f in rows.schema]
        try:
            return rows.cast(pa.schema(fields))
        except pa.ArrowException as error:
            raise NotByArrowError(Reason.TYPES) from error

    def matched(self, change: Replacement, rows: pa.Table, source: pa.Table) -> pa.Table:
        """The rows that a change matches."""
        return rows.filter(pc.is_valid(_matched(change, rows, source, self.stage.base.schema)))

    def unmatched(self, change: Replacement, rows: pa.Table, source: pa.Table) -> pa.Table:
        """The rows that a change does not match."""
        return rows.filter(pc.is_null(_matched(change, rows, source, self.stage.base.schema)))

    def first(self, rows: pa.Table) -> dict[str, object] | None:
        """One of the rows; None if there is none."""
        return next(iter(rows.slice(0, 1).to_pylist()), None)

    def replaced(
        self, change: Replacement, files: pa.Table, source: pa.Table
    ) -> tuple[ArrowRows, int]:
        """What some files hold after a change, and how many rows they had; 0 for a stream."""
        stage = self.stage
        names = list(dict.fromkeys([*stage.kept, *sorted(change.where.columns)]))
        known = stage.known_count(files) if self.is_bounded else 0
        if known is not None and stage.goes_whole(change, files):
            return _in_columns(self.new, self.types), known
        if self.is_bounded:
            old = self.rows(files, names)
            parts = _replaced(change, [old], source, self.new, self.types, self.stage.base.schema)
            return pa.concat_tables(parts), old.num_rows
        part = replace(stage.base, file_table=files)
        batches = present_batches(stage.write.state, part, stage.footers)
        read = in_types(batches, pa.schema(map(self.types.field, names)))
        tables = (pa.Table.from_batches([batch]) for batch in read)
        parts = _replaced(change, tables, source, self.new, self.types, self.stage.base.schema)
        stream = (batch for table in parts for batch in table.to_batches())
        return pa.RecordBatchReader.from_batches(self.types, stream), 0


def accepted(stage: Stage, types: pa.Schema, files: pa.Table, change: Replacement) -> ByArrow:
    """Accept a change, or raise a `NotByArrowError` that says why Spark has to do it.

    New rows in Spark are persisted and computed already.
    """
    new, cells = stage.new, stage.cells
    check_exact(types, change.keys)
    if isinstance(new, ArrowRows):
        return ByArrow(stage, types, _cast(new, types), False)
    check_exact(types, () if change.frees(cells) else cells)
    if stage.target.constraints:
        raise NotByArrowError(Reason.CONSTRAINTS)
    if _is_dealt(stage):
        raise NotByArrowError(Reason.FILES)
    if not stage.goes_whole(change, files) and not is_small(files, len(stage.kept)):
        raise NotByArrowError(Reason.SIZE)
    from ktk_engine.spark.read.collect import few_rows

    rows = few_rows(new, MAXIMUM_BYTES)
    if rows is None:
        raise NotByArrowError(Reason.SIZE)
    try:
        return ByArrow(stage, types, _cast(rows, types), True)
    except DataError as error:
        raise NotByArrowError(Reason.TYPES) from error


def check_exact(types: pa.Schema, names: Sequence[str]) -> None:
    """Raise a `NotByArrowError` if Arrow and Spark differ about equal values of a column."""
    for name in names:
        found = types.field(name).type
        if arrow_compares_unlike_spark(found):
            raise NotByArrowError(
                Reason.CLASS,
                f"`{name}` is of class {class_name(found)}, whose values cannot be a key: they "
                "have no exact equality",
            )


def _is_dealt(stage: Stage) -> bool:
    """Whether Spark deals the rows of a partition to several files."""
    target = stage.target
    by_cell = bool(target.buckets) and not target.partition_by
    return bool(stage.cells) and (target.num_buckets > 1 or by_cell)


def _cast(rows: pa.Table, types: pa.Schema) -> pa.Table:
    fields = [types.field(name) for name in rows.column_names]
    columns = [
        rows[field.name]
        if rows[field.name].type.equals(field.type)
        else to_container(rows[field.name], field.type)
        for field in fields
    ]
    return pa.table(columns, schema=pa.schema(fields))


def _replaced(
    change: Replacement,
    old: Iterable[pa.Table],
    source: pa.Table,
    new: pa.Table,
    types: pa.Schema,
    classes: pa.Schema,
) -> Iterator[pa.Table]:
    """Give the old rows that stay or are updated, then the new ones."""
    found = []
    for rows in old:
        places = _matched(change, rows, source, classes)
        if change.updated is None:
            yield _in_columns(rows.filter(pc.is_null(places)), types)
        else:
            yield _updated(_in_columns(rows, types), source, places, change.updated)
        if not change.appends:
            found.append(pc.unique(places))
    if found:
        new = new.filter(pc.invert(pc.is_in(_numbers(new), value_set=pa.concat_arrays(found))))
    yield _in_columns(new, types)


def _updated(
    rows: pa.Table, source: pa.Table, places: pa.Array, updated: Sequence[str]
) -> pa.Table:
    """Choose each value from the old rows with the source's after them."""
    taken = pc.coalesce(pc.add(places, len(rows)), _numbers(rows))
    changed = set(updated).intersection(source.column_names)
    columns = rows.columns
    for number, field in enumerate(rows.schema):
        if field.name in changed:
            chunks = [*columns[number].chunks, *source[field.name].chunks]
            columns[number] = pa.chunked_array(chunks, field.type).take(taken)
    return pa.table(columns, schema=rows.schema)


def _matched(change: Replacement, rows: pa.Table, source: pa.Table, classes: pa.Schema) -> pa.Array:
    """For each row, the place of the source row that it matches, else null.

    `classes` has the condition's columns in the types of their classes: Spark has unsigned integers
    as decimals.
    """
    if change.keys:
        places = _places(rows, source, change.keys)
    else:
        places = pa.array(np.zeros(len(rows), np.int64))
    for name in sorted(change.where.columns):
        wanted = classes.field(name)
        if not normalize(rows[name].type).equals(wanted.type):
            number = rows.column_names.index(name)
            rows = rows.set_column(number, wanted, to_container(rows[name], wanted.type))
    holds = pc.fill_null(evaluate(change.where, rows), False)
    return pc.if_else(holds, places, pa.scalar(None, pa.int64()))


def _places(rows: pa.Table, source: pa.Table, keys: Sequence[str]) -> pa.Array:
    """For each row, the first place of its key in a source; else null."""
    rows, source = _plain_keys(rows, keys), _plain_keys(source, keys)
    if len(keys) == 1:
        sought, among = rows[0].combine_chunks(), source[0].combine_chunks()
        return pc.index_in(sought, value_set=among, skip_nulls=True).cast(pa.int64())
    names = list(keys)
    places = source.append_column(_FOUND, _numbers(source))
    places = places.group_by(names).aggregate([(_FOUND, "min")])
    numbered = rows.append_column(_PLACE, _numbers(rows))
    found = numbered.join(places, names, join_type="left outer").sort_by(_PLACE)
    return found[f"{_FOUND}_min"].combine_chunks()


def _plain_keys(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The keys of rows in types that Arrow looks up: not in dictionaries."""
    return pa.table(
        {
            key: pa.chunked_array(map(plain_values, rows[key].chunks), plain_type(rows[key].type))
            for key in keys
        }
    )


def _in_columns(rows: pa.Table, types: pa.Schema) -> pa.Table:
    there = set(rows.column_names)
    columns = [
        rows[field.name] if field.name in there else pa.nulls(len(rows), field.type)
        for field in types
    ]
    return pa.table(columns, schema=types)


def _numbers(rows: pa.Table) -> pa.Array:
    return pa.array(np.arange(len(rows), dtype=np.int64))
