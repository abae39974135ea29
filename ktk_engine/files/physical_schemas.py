"""The types that the columns of a dataset have in its files."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.files.footers import FooterCache
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore


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
