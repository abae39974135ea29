"""Secondary index files: the partitions in which a value occurs.

In memory an index is a table with the columns `value` and `partition` (the labels), one row per
value. `flatten_index` gives pairs of value and label.
See docs/design/kartothek-format.md, Index files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.errors import DataError, FormatError, TypeClassError
from ktk_engine.format.file_digest import DAMAGE
from ktk_engine.format.parquet import bounds_of, open_with_storage_types, typed_bounds
from ktk_engine.types.type_class import class_name, normalize, role_problem

if TYPE_CHECKING:
    import numpy.typing as npt

VALUE = "value"
PARTITION_COLUMN = "partition"

_LABELS = pa.list_(pa.string())
_ROW_GROUP_SIZE = 10_000
_SMALL_COUNT, _COUNT_A_BYTE = 100_000, 100


@dataclass(frozen=True)
class IndexGroups:
    """The row groups of an index file, from its footer."""

    rows: pa.Array  # number of values
    lows: pa.Array  # lower bounds; null: unknown
    highs: pa.Array  # upper bounds, likewise


def read_index_groups(source: pa.NativeFile) -> IndexGroups:
    """Read the footer of an index file; raises a `FormatError` if it is damaged or no index."""
    with _opened(source) as file:
        position = 1 - _label_position(file.schema_arrow)
        t = file.schema_arrow.types[position]
        groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
        bounds = [bounds_of([group.column(position).statistics], t) for group in groups]
        container = normalize(t)
    return IndexGroups(
        pa.array([group.num_rows for group in groups], pa.int64()),
        typed_bounds([low for low, _, _ in bounds], container),
        typed_bounds([high for _, high, _ in bounds], container),
    )


def read_index(source: bytes | pa.NativeFile, groups: Sequence[int] | None = None) -> pa.Table:
    """Read an index file, or some of its row groups, in the file's order and without nulls.

    Values are in the container type of their class. Raises a `FormatError` if the file is damaged
    or no index.
    """
    with _opened(source) as file:
        position = _label_position(file.schema_arrow)
        numbers = list(range(file.num_row_groups) if groups is None else groups)
        # Arrow 18 cannot read no group at all.
        table = file.read_row_groups(numbers) if numbers else file.schema_arrow.empty_table()
        _check_counts(table, file.metadata, numbers)
        value = table.column(1 - position)
        columns = [value.cast(normalize(value.type)), table.column(position).cast(_LABELS)]
    index = pa.table(columns, [VALUE, PARTITION_COLUMN])
    return index.filter(pc.is_valid(index[VALUE])) if value.null_count else index


def _check_counts(table: pa.Table, metadata: pq.FileMetaData, groups: Sequence[int]) -> None:
    """Refuse a file with other numbers of values and labels than its footer says.

    The numbers are also in headers of pages, which have no checksum.
    """
    found = [metadata.row_group(number) for number in groups]
    position = _label_position(table.schema)
    lists = table.column(position)
    labels = pc.list_flatten(lists)
    # An empty list and a null count as one entry of the column.
    entries = len(labels) + len(lists) - pc.sum(pc.greater(_lengths(lists), 0), min_count=0).as_py()
    if table.num_rows != sum(group.num_rows for group in found):
        raise FormatError(f"it has {table.num_rows} values, its footer says otherwise")
    if entries != sum(group.column(position).num_values for group in found):
        raise FormatError(f"it has {len(labels)} labels, its footer says otherwise")
    if lists.null_count or labels.null_count:
        raise FormatError("a value has no label")


def _lengths(lists: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.list_value_length(lists), 0)


@contextmanager
def _opened(source: bytes | pa.NativeFile) -> Iterator[pq.ParquetFile]:
    reader = pa.BufferReader(source) if isinstance(source, bytes) else source
    try:
        with open_with_storage_types(reader, page_checksum_verification=True) as file:
            _check_count(file.metadata, reader.size())
            yield file
    except (*DAMAGE, TypeClassError) as error:
        raise FormatError(f"the index file is damaged: {error}") from error


def _check_count(metadata: pq.FileMetaData, size: int) -> None:
    """Refuse a file that claims far more values than its size can hold: they are distinct."""
    largest = _SMALL_COUNT + _COUNT_A_BYTE * size
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        found = max((group.column(i).num_values for i in range(group.num_columns)), default=0)
        if max(found, group.num_rows) > largest:
            raise FormatError(
                f"the index file has {size:,} bytes and claims {found:,} values in row group "
                f"{number}; the limit for its size is {largest:,}"
            )


def _label_position(schema: pa.Schema) -> int:
    """Position of the labels: the other column has the indexed column's name."""
    position = int(schema.get_field_index(PARTITION_COLUMN))
    if len(schema.names) != 2 or position < 0:
        raise FormatError(
            f"the index file has the columns {schema.names}; expected are one for the value, "
            f"and {PARTITION_COLUMN!r}"
        )
    return position


_LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def render_index(column: str, table: pa.Table, *, large: bool = False) -> bytes:
    """Render an index as a file that Kartothek can read, sorted by value.

    `large` says whether values are of Arrow's large types in other files. Raises a `FormatError` if
    the column is called `partition`, or if Kartothek has no index for its class (nested, null,
    decimal, time).
    """
    if column == PARTITION_COLUMN:
        raise FormatError(
            f"a column called {PARTITION_COLUMN!r} cannot be indexed: index files have a column "
            "of this name for the labels. Rename it"
        )
    problem = role_problem(table.schema.field(VALUE).type, "index")
    if problem is not None:
        raise FormatError(f"the column {column!r} cannot be indexed: {problem}")
    index = _sorted(_normalized(table).combine_chunks(), VALUE)
    if large and (layout := _LARGE.get(index.schema.field(VALUE).type)):
        index = index.set_column(0, VALUE, index[VALUE].cast(layout))
    sink = pa.BufferOutputStream()
    pq.write_table(
        index.rename_columns([column, PARTITION_COLUMN]),
        sink,
        version="1.0",
        row_group_size=_ROW_GROUP_SIZE,
        compression="snappy",
        coerce_timestamps="us" if pat.is_timestamp(index.schema.field(VALUE).type) else None,
        use_compliant_nested_type=False,
        write_page_checksum=True,
    )
    rendered: bytes = sink.getvalue().to_pybytes()
    return rendered


def indexed_values(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Give values as an index has them: in the container type, with `-0.0` as `0.0`; nulls stay.

    Raises a `DataError` if a value does not fit into the container type without loss.
    """
    t = normalize(values.type)
    try:
        plain = _plain(values).cast(t)
    except pa.ArrowInvalid as error:
        raise DataError(f"a value of type {values.type} cannot be indexed: {error}") from error
    return pc.add(plain, 0.0) if pat.is_floating(t) else plain


def build_index(values: pa.Array | pa.ChunkedArray, labels: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Build an index from pairs of value and label: sorted distinct values with sorted labels.

    Nulls are dropped, as in Kartothek. NaN is kept: Spark finds it with `=` and `>`, so an index
    without it would lose rows. `-0.0` becomes `0.0`. Raises a `DataError` if a value does not fit
    into its container type without loss.
    """
    plain = indexed_values(values)
    # Labels become numbers in their order, which sort and compare faster than long texts.
    encoded = _encoded(_plain(labels))
    order = pc.sort_indices(encoded.dictionary)
    rank = pc.subtract(pc.rank(encoded.dictionary), pa.scalar(1, pa.uint64()))
    pairs = pa.table({VALUE: plain, PARTITION_COLUMN: rank.take(encoded.indices)})
    pairs = _sorted(_sorted(pairs.filter(pc.is_valid(plain)), PARTITION_COLUMN), VALUE)
    values, numbers = _plain(pairs[VALUE]), _plain(pairs[PARTITION_COLUMN])
    starts = _changes(values)
    distinct = starts | _changes(numbers)
    offsets = np.append(np.flatnonzero(starts[distinct]), np.count_nonzero(distinct))
    names = encoded.dictionary.take(order).take(numbers.filter(pa.array(distinct)))
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), names)
    return pa.table([values.filter(pa.array(starts)), lists], [VALUE, PARTITION_COLUMN])


def _encoded(labels: pa.Array) -> pa.DictionaryArray:
    """Give labels as a dictionary without duplicates."""
    if pat.is_dictionary(labels.type) and len(labels.dictionary.unique()) == len(labels.dictionary):
        return labels
    return labels.cast(pa.string()).dictionary_encode()


def _sorted(table: pa.Table, column: str) -> pa.Table:
    """Sort rows by a column without nulls; the sort is stable."""
    values = _plain(table[column])
    if pc.all(pc.less_equal(values[:-1], values[1:])).as_py() is not False:
        return table
    # Sorting an array is stable, and a counting sort for few distinct numbers.
    return table.take(pc.array_sort_indices(values)).combine_chunks()


def _changes(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Flag the values that differ from the one before, the first one included; NaN is one value."""
    before, after = values[:-1], values[1:]
    differs = pc.not_equal(after, before)
    if pat.is_floating(values.type):
        differs = pc.and_not(differs, pc.and_(pc.is_nan(before), pc.is_nan(after)))
    changes = np.ones(len(values), np.bool_)
    changes[1:] = differs.to_numpy(zero_copy_only=False)
    return changes


def flatten_index(table: pa.Table) -> pa.Table:
    """Turn an index into pairs, with the columns `value` and `label`, in the index's order."""
    lists = _plain(table.column(PARTITION_COLUMN))
    values = _plain(table.column(VALUE)).take(pc.list_parent_indices(lists))
    return pa.table({VALUE: values, "label": pc.list_flatten(lists)})


def restrict_index(table: pa.Table, labels_removed: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Take labels out of an index, and drop values that have none left; unknown labels are fine."""
    pairs = flatten_index(table)
    removed = _plain(labels_removed).cast(pa.string())
    pairs = pairs.filter(pc.invert(pc.is_in(pairs["label"], value_set=removed)))
    return build_index(pairs[VALUE], pairs["label"])


def merge_indices(a: pa.Table, b: pa.Table) -> pa.Table:
    """Unite two indexes of one column; raises a `FormatError` if their classes differ."""
    first, second = _normalized(a), _normalized(b)
    check_same_class(first.schema.field(VALUE).type, second.schema.field(VALUE).type)
    pairs = pa.concat_tables([flatten_index(first), flatten_index(second)])
    return build_index(pairs[VALUE], pairs["label"])


def check_same_class(a: pa.DataType, b: pa.DataType) -> None:
    """Raise a `FormatError` for values of different classes in one index."""
    if normalize(a) != normalize(b):
        raise FormatError(
            f"indexes of different classes cannot be merged: {class_name(a)} and {class_name(b)}"
        )


def _normalized(table: pa.Table) -> pa.Table:
    value = table.column(VALUE)
    return pa.table(
        [value.cast(normalize(value.type)), table.column(PARTITION_COLUMN).cast(_LABELS)],
        [VALUE, PARTITION_COLUMN],
    )


def _plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
