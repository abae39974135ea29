"""What is known about a dataset's files, for forms that publish these files: types, sizes, counts.

Files are published as they are. So a column has the type that its files have, not the container of
its class. See docs/design/files-and-commits.md, Published forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.cube.dataset_uuid import cube_and_dataset
from ktk_engine.errors import PublishError
from ktk_engine.formatting import counted
from ktk_engine.messages import Message, Remedy
from ktk_engine.snapshot.snapshot import (
    MAXIMUM_PREFIX,
    NANS_PREFIX,
    NULLS_PREFIX,
    Snapshot,
    is_own,
)
from ktk_engine.types.type_class import class_name, is_nested, unwrap

# Types that Delta and Iceberg call by the same names.
PLAIN_TYPES = (
    (pat.is_boolean, "boolean"),
    (pat.is_float32, "float"),
    (pat.is_float64, "double"),
    (pat.is_string, "string"),
    (pat.is_large_string, "string"),
    (pat.is_string_view, "string"),
    (pat.is_binary, "binary"),
    (pat.is_large_binary, "binary"),
    (pat.is_binary_view, "binary"),
    (pat.is_date32, "date"),
)


class Inexpressible(Exception):
    """Why a column cannot be published."""

    def __init__(self, *parts: object) -> None:
        self.message = Message(*parts)
        super().__init__(self.message)


def names_alike(names: Iterable[str], title: str) -> Iterator[str]:
    """Describe columns whose names differ only in letter case, which some engines ignore."""
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.lower(), name)) != name:
            yield f"columns {other} and {name}: {title} ignores letter case. Rename one"


def schemas_in_use(snapshot: Snapshot) -> list[pa.Schema]:
    """The physical schemas that some file has.

    Raises a `PublishError` if nothing is recorded of files of another program.
    """
    numbers = snapshot.file_column("physical")
    if numbers.null_count:
        raise PublishError(
            f"the types in {counted(numbers.null_count, 'file')} of another program are not "
            "known yet: ",
            Remedy.on("publish", *cube_and_dataset(snapshot.uuid)),
        )
    return [snapshot.physical_schemas[number] for number in pc.unique(numbers).to_pylist()]


def check_measured(snapshot: Snapshot, *columns: str) -> None:
    """Raise a `PublishError` if a measure of a file is unknown: `rows` or `bytes`."""
    if any(snapshot.file_column(name).null_count for name in columns):
        raise PublishError(
            "the size of files of another program is not recorded yet: ",
            Remedy.on("publish", *cube_and_dataset(snapshot.uuid)),
        )


def counted_columns(snapshot: Snapshot, most: int) -> list[str]:
    """The columns whose statistics are published: plain ones in files, dimension columns first."""
    keys, dimensions = snapshot.partition_keys, snapshot.dimension_columns
    found = [f.name for f in snapshot.schema if f.name not in keys and not is_nested(f.type)]
    return sorted(found, key=lambda name: name not in dimensions)[:most]


def null_counts(snapshot: Snapshot, name: str) -> pa.Array:
    """How many nulls of a column each file holds: all its rows, if it lacks the column."""
    at = snapshot.file_column("physical").combine_chunks()
    lacking = [n for n, s in enumerate(snapshot.physical_schemas) if name not in s.names]
    lacks = pc.is_in(at, value_set=pa.array(lacking, at.type))
    known = _of_files(snapshot, NULLS_PREFIX + name)
    return pc.if_else(lacks, snapshot.file_column("rows").combine_chunks(), known)


def nan_counts(snapshot: Snapshot, name: str) -> pa.Array:
    """How many NaN of a column of floats each file holds; null where that is not recorded."""
    return _of_files(snapshot, NANS_PREFIX + name)


def bounds_of_files(snapshot: Snapshot, prefix: str, name: str) -> pa.Array:
    """The smallest or largest value of a column in each file; null where it proves nothing.

    Other programs may have cut theirs, and engines order NaN in their own ways.
    """
    trusted, found = is_own(snapshot.file_table), _of_files(snapshot, prefix + name)
    if pat.is_floating(found.type):
        without_nan = pc.fill_null(pc.equal(nan_counts(snapshot, name), 0), False)
        trusted = pc.and_(trusted, without_nan)
    return pc.if_else(trusted, found, pa.scalar(None, found.type))


def stored_types(schemas: Iterable[pa.Schema], field: pa.Field) -> list[pa.DataType]:
    """The types that files have for a column; none if no file has it.

    Raises `Inexpressible` if files have no type for it, or one of another class.
    """
    name = field.name
    stored = dict.fromkeys(s.field(name).type for s in schemas if s.get_field_index(name) >= 0)
    if any(_lacks_type(t) for t in (field.type, *stored)):
        part = "a part of it" if is_nested(field.type) else "it"
        raise Inexpressible(
            f"files have no type for {part}, as there was no value when they were written. Cast it "
            "to a type, and rebuild the dataset"
        )
    if others := [t for t in stored if class_name(t) != class_name(field.type)]:
        raise Inexpressible(
            f"files of another class hold {others[0]}, and it is {class_name(field.type)}. Rewrite "
            "them: rebuild the dataset"
        )
    return list(stored)


def _lacks_type(t: pa.DataType) -> bool:
    """Whether a type is or holds that of columns without values."""
    t = unwrap(t)
    return pat.is_null(t) or any(_lacks_type(t.field(at).type) for at in range(t.num_fields))


def in_other_unit(t: pa.DataType, title: str) -> Inexpressible:
    """The reason why times in another unit than microseconds cannot be published."""
    return Inexpressible(
        f"files hold {t}, and {title} has microseconds. Cast it to microseconds, and rebuild the "
        "dataset"
    )


def different_types(snapshot: Snapshot, stored: Iterable[pa.DataType]) -> Inexpressible:
    """The reason why files of several types cannot be one column."""
    types = ", ".join(sorted(str(t) for t in stored))
    again = Remedy.on("compact", *cube_and_dataset(snapshot.uuid))
    return Inexpressible(f"files hold different types, {types}. Give them one: ", again)


def refuse_large(snapshot: Snapshot, name: str, stored: Iterable[pa.DataType]) -> None:
    """Raise `Inexpressible` if a column may hold 32-bit unsigned numbers that readers misread.

    Parquet stores them in 32 bits, with a note that not all readers of a `long` respect: Trino
    reads them as negative.
    """
    if not any(pat.is_uint32(unwrap(t)) for t in stored):
        return
    limit = 2**31
    names = (MAXIMUM_PREFIX + name, "rows", NULLS_PREFIX + name)
    known = (_of_files(snapshot, column).to_pylist() for column in names)
    for top, count, empty in zip(*known, strict=True):
        if top is None and (empty is None or empty != count):
            raise Inexpressible(
                "the largest of its unsigned numbers is unknown. Rebuild the dataset, or store "
                "the column as bigint"
            )
        if top is not None and top >= limit:
            raise Inexpressible(
                f"it holds {top}, and some readers read unsigned numbers from {limit} on as "
                "negative. Store the column as bigint or uint64"
            )


def _of_files(snapshot: Snapshot, column: str) -> pa.Array:
    """A column of the table of files; unknown for all of them if it has none."""
    if column not in snapshot.file_table.column_names:
        return pa.nulls(snapshot.file_table.num_rows, pa.int64())
    return snapshot.file_column(column).combine_chunks()
