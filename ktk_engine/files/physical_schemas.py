"""The types that the columns of a dataset have in its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.files.footers import Footer, FooterCache
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.declared import stored_type
from ktk_engine.types.mismatch import wider
from ktk_engine.types.type_class import class_name, plain_type


def physical_schemas(
    store: ObjectStore, footers: FooterCache, snapshot: Snapshot, files: pa.Table
) -> tuple[list[pa.Schema], pa.Array]:
    """The distinct physical schemas of files, and the number of each file's schema."""
    at = files["physical"].combine_chunks()
    if not at.null_count and snapshot.physical_schemas:
        return list(snapshot.physical_schemas), at
    schemas, numbers = numbered((), footers.read(store, files["key"].to_pylist()))
    return list(schemas), pa.array(numbers, pa.int32())


def numbered(
    known: tuple[pa.Schema, ...], footers: Sequence[Footer]
) -> tuple[tuple[pa.Schema, ...], list[int]]:
    """The distinct physical schemas, and the number of each file's schema."""
    schemas, numbers = list(known), []
    places = {str(schema.remove_metadata()): place for place, schema in enumerate(schemas)}
    for footer in footers:
        schema = footer.schema.remove_metadata()
        place = places.setdefault(str(schema), len(schemas))
        if place == len(schemas):
            schemas.append(schema)
        numbers.append(place)
    return tuple(schemas), numbers


def unstored_columns(
    snapshot: Snapshot, schemas: Sequence[pa.Schema], at: pa.Array | pa.ChunkedArray
) -> list[str]:
    """The columns that some files lack, and readers of this library see as null.

    `at` has the number of each file's schema.
    """
    partitions, used = set(snapshot.partition_keys), pc.unique(at).drop_null().to_pylist()
    there = [set(schemas[place].names) for place in used]
    names = [name for name in snapshot.schema.names if name not in partitions]
    return [name for name in names if not all(name in own for own in there)]


def kept_types(snapshot: Snapshot, gone: pa.Table | None, new: pa.Schema) -> dict[str, pa.DataType]:
    """The types of columns in the files that stay, where those of new rows are others.

    `gone` are the files that do not stay.
    """
    count = 0 if gone is None else gone.num_rows
    if count == snapshot.file_table.num_rows:
        return {}
    places: list[int] = list(range(len(snapshot.physical_schemas)))
    if snapshot.published_as and len(places) > 1:  # else it does not matter which are in use
        at = snapshot.file_column("physical")
        if gone is not None and count:
            known = snapshot.file_column("position")
            at = at.filter(pc.invert(pc.is_in(known, value_set=gone["position"].combine_chunks())))
        places = pc.unique(at).drop_null().to_pylist()
    found = widest_types(snapshot, places)
    return {
        field.name: _written(t)
        for field in new
        if (t := found.get(field.name)) is not None
        and class_name(t) == class_name(field.type)
        and t != field.type
    }


def _written(t: pa.DataType) -> pa.DataType:
    """The type as Arrow writes it everywhere: views of other writers are plain."""
    return t if t.equals(plain_type(t)) else stored_type(t)


def widest_types(snapshot: Snapshot, places: Iterable[int]) -> dict[str, pa.DataType]:
    """The widest type of each column in some physical schemas; of equally wide ones, the newest.

    It is that of the class where no file has a whole type.
    """
    schemas = [snapshot.physical_schemas[place] for place in sorted(places, reverse=True)]
    found = {}
    for field in snapshot.schema:
        stored = [s.field(field.name).type for s in schemas if s.get_field_index(field.name) >= 0]
        if stored:
            found[field.name] = _widest(stored, field.type)
    return found


def _widest(stored: Iterable[pa.DataType], own: pa.DataType) -> pa.DataType:
    """The type that holds the values of all that are of a column's class; else the column's own."""
    whole = [t for t in stored if class_name(t) == class_name(own)]
    return reduce(wider, whole) if whole else own


def stored_schema(
    store: ObjectStore, footers: FooterCache, snapshot: Snapshot, files: pa.Table
) -> pa.Schema:
    """The types of the files' columns: the widest, or the class's if files have none."""
    schemas, at = physical_schemas(store, footers, snapshot, files)
    used = [schemas[place] for place in sorted(pc.unique(at).to_pylist(), reverse=True)]
    fields = []
    for item in snapshot.schema:
        places = [(schema, schema.get_field_index(item.name)) for schema in used]
        types = [schema.field(place).type for schema, place in places if place >= 0]
        known = [t for t in dict.fromkeys(types) if not pat.is_null(t)]
        if known and item.name not in snapshot.partition_keys:
            item = item.with_type(known[0] if len(known) == 1 else _widest(known, item.type))
        fields.append(item)
    return pa.schema(fields)
