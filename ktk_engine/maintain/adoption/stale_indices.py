"""Secondary indexes of other programs that do not name all files with values.

Kartothek before 3.19 left such indexes; queries by such a column miss rows, there and here.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.errors import FormatError
from ktk_engine.files.build_index import pairs_of_files
from ktk_engine.files.index_place import IndexPlace
from ktk_engine.files.stored_index import get_index
from ktk_engine.format.index_file import VALUE, flatten_index
from ktk_engine.snapshot.column_index import indices_of, with_indices
from ktk_engine.snapshot.snapshot import MAXIMUM_PREFIX, MINIMUM_PREFIX, NULLS_PREFIX, Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.type_class import normalize


def stale_indices(store: ObjectStore, snapshot: Snapshot) -> dict[str, int]:
    """Count the files of each indexed column whose values its index does not name.

    Footers tell which files have values. Columns with complete indexes, and indexes written here,
    are left out. An index that cannot be read names nothing. Raises an `ObjectNotFoundError` for a
    missing index file.
    """
    found = {
        name: _unnamed(store, snapshot, name, key)
        for name, key in snapshot.indices.items()
        if key not in snapshot.index_digests and name in snapshot.schema.names
    }
    return {name: count for name, count in found.items() if count}


def with_new_indices(place: IndexPlace, snapshot: Snapshot, names: Iterable[str]) -> Snapshot:
    """Rebuild indexes from the columns themselves.

    Raises a `FormatError` or an `ObjectNotFoundError` for a damaged or missing data file.
    """
    indices = indices_of(snapshot)
    for name in names:
        column = snapshot.schema.field(name)
        pairs = pairs_of_files(place.store, None, snapshot.files, column)
        large = name in snapshot.large_columns
        indices[name] = place.build(name, column.type, pairs, large=large)
    return with_indices(snapshot, indices)


def _unnamed(store: ObjectStore, snapshot: Snapshot, name: str, key: str) -> int:
    """The number of files with values that an index does not name."""
    labels = snapshot.file_column("label").combine_chunks()
    held = _held(snapshot, name)
    try:
        pairs = flatten_index(get_index(store, key, None))
    except FormatError:
        return pc.sum(held).as_py() or 0
    t = normalize(snapshot.schema.field(name).type)
    if normalize(pairs[VALUE].type) != t:
        return 0  # of another class: `ktk check` reports it
    pairs = pairs.set_column(0, VALUE, pairs[VALUE].cast(t))
    if not _has_exact_bounds(t):
        pairs = pa.table({"label": pc.unique(pairs["label"])})
        at = pc.index_in(labels, value_set=pairs["label"].combine_chunks())
        return pc.sum(pc.and_(held, pc.is_null(at))).as_py() or 0
    named = pairs.group_by("label").aggregate([(VALUE, "min"), (VALUE, "max")])
    at = pc.index_in(labels, value_set=named["label"].combine_chunks())
    low, high = (named[f"{VALUE}_{end}"].take(at).combine_chunks() for end in ("min", "max"))
    short = pc.is_null(at)
    for bound, prefix, beyond in (
        (low, MINIMUM_PREFIX, pc.less),
        (high, MAXIMUM_PREFIX, pc.greater),
    ):
        if prefix + name in snapshot.file_table.column_names:
            known = snapshot.file_column(prefix + name).combine_chunks().cast(t)
            short = pc.or_(short, pc.fill_null(beyond(known, bound), False))
    return pc.sum(pc.and_(held, short)).as_py() or 0


def _held(snapshot: Snapshot, name: str) -> pa.BooleanArray:
    """Which files hold a value of a column, by their footers."""
    rows = pc.fill_null(snapshot.file_column("rows").combine_chunks(), 1)
    if NULLS_PREFIX + name in snapshot.file_table.column_names:
        nulls = snapshot.file_column(NULLS_PREFIX + name).combine_chunks()
        rows = pc.subtract(rows, pc.fill_null(nulls, 0))
    lacking = [
        number
        for number, schema in enumerate(snapshot.physical_schemas)
        if name not in schema.names or pat.is_null(schema.field(name).type)
    ]
    physical = snapshot.file_column("physical").combine_chunks()
    without = pc.is_in(physical, value_set=pa.array(lacking, physical.type))
    return pc.and_(pc.greater(rows, 0), pc.invert(without))


def _has_exact_bounds(t: pa.DataType) -> bool:
    """Whether bounds in footers are values of the column: those of text may be cut."""
    return bool(pat.is_integer(t) or pat.is_date(t) or pat.is_timestamp(t))
