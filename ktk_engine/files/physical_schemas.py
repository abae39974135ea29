"""The types that the columns of a dataset have in its files."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.files.footers import FooterCache
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.type_class import class_name, plain_type, unwrap


def physical_schemas(
    store: ObjectStore, footers: FooterCache, snapshot: Snapshot, files: pa.Table
) -> tuple[list[pa.Schema], pa.Array]:
    """The distinct physical schemas of files, and the number of each file's schema."""
    at = files["physical"].combine_chunks()
    if not at.null_count and snapshot.physical_schemas:
        return list(snapshot.physical_schemas), at
    distinct: dict[str, int] = {}
    schemas: list[pa.Schema] = []
    numbers = []
    for footer in footers.read(store, files["key"].to_pylist()):
        text = str(footer.schema.remove_metadata())
        if text not in distinct:
            distinct[text] = len(schemas)
            schemas.append(footer.schema)
        numbers.append(distinct[text])
    return schemas, pa.array(numbers, pa.int32())


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
        field.name: t
        for field in new
        if (t := found.get(field.name)) is not None
        and class_name(t) == class_name(field.type)
        and plain_type(t) != plain_type(field.type)
    }


def widest_types(snapshot: Snapshot, places: Iterable[int]) -> dict[str, pa.DataType]:
    """The widest type of each column in some physical schemas; of equally wide ones, the newest.

    It is that of the class where no file has a whole type.
    """
    schemas = [snapshot.physical_schemas[place] for place in sorted(places, reverse=True)]
    found = {}
    for field in snapshot.schema:
        stored = [s.field(field.name).type for s in schemas if s.get_field_index(field.name) >= 0]
        whole = [t for t in stored if class_name(t) == class_name(field.type)]
        if stored:
            found[field.name] = max(whole, key=_width, default=field.type)
    return found


def _width(t: pa.DataType) -> int:
    t = unwrap(t)
    if pat.is_nested(t):
        return sum(_width(t.field(at).type) for at in range(t.num_fields))
    if pat.is_decimal(t):
        return int(t.precision)
    if pat.is_integer(t) or pat.is_floating(t):
        return int(t.bit_width)
    return 0 if pat.is_fixed_size_binary(t) else 1


def stored_schema(
    store: ObjectStore, footers: FooterCache, snapshot: Snapshot, files: pa.Table
) -> pa.Schema:
    """The types of the files' columns where they agree, else those of the columns' classes."""
    schemas, at = physical_schemas(store, footers, snapshot, files)
    used = [schemas[place] for place in pc.unique(at).to_pylist()]
    fields = []
    for item in snapshot.schema:
        places = [(schema, schema.get_field_index(item.name)) for schema in used]
        types = {schema.field(place).type for schema, place in places if place >= 0}
        agreed = types.pop() if len(types) == 1 else None
        known = agreed is not None and not pat.is_null(agreed)
        own = item.name in snapshot.partition_keys or not known
        fields.append(item if own else item.with_type(agreed))
    return pa.schema(fields)
