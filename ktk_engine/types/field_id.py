"""Ids of columns and of their fields, by which readers of Iceberg find them in files.

An id follows from a path and a class alone. So all files have the right ones, whenever and for
whatever dataset they were written, and no record has to follow renamed or restored columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.types.type_class import class_name, is_list, is_nested, unwrap

_KEY = b"PARQUET:field_id"
_IDS = 2_000_000_000  # Iceberg keeps those near 2^31 for itself


def field_id(path: Sequence[str], t: pa.DataType) -> int:
    """The id of a column or field: the names that lead to it, and its type.

    Types have one id if Iceberg's readers may find values of both in one column.
    """
    text = "\0".join((*path, _kind(unwrap(t))))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % _IDS + 1


def _kind(t: pa.DataType) -> str:
    if is_list(t):
        return "list"
    if is_nested(t):
        return "map" if pat.is_map(t) else "struct"
    return str(t) if pat.is_fixed_size_binary(t) else class_name(t)


def parts_of(t: pa.DataType) -> list[tuple[str, pa.Field]]:
    """The fields of a nested type with the names that Iceberg has for them; else none."""
    t = unwrap(t)
    if pat.is_struct(t):
        return [(field.name, field) for field in t]
    if pat.is_map(t):
        return [("key", t.key_field), ("value", t.item_field)]
    return [("element", t.value_field)] if is_list(t) else []


def with_field_ids(schema: pa.Schema) -> pa.Schema:
    """Give all columns and fields of a file their ids, in place of other metadata."""
    return pa.schema([_with_id((field.name,), field) for field in schema])


def _with_id(path: Sequence[str], field: pa.Field) -> pa.Field:
    t, number = field.type, field_id(path, field.type)
    parts = [_with_id((*path, name), part) for name, part in parts_of(t)]
    if pat.is_struct(t):
        t = pa.struct(parts)
    elif pat.is_map(t):
        t = pa.map_(*parts)
    elif pat.is_fixed_size_list(t):
        t = pa.list_(*parts, t.list_size)
    elif pat.is_list(t):
        t = pa.list_(*parts)
    return pa.field(field.name, t, field.nullable, {_KEY: str(number)})


def foreign_ids(schema: pa.Schema) -> Iterator[str]:
    """The columns that have an id of another program in a file, or a field with one."""
    return (field.name for field in schema if _has_foreign((field.name,), field))


def _has_foreign(path: Sequence[str], field: pa.Field) -> bool:
    said = (field.metadata or {}).get(_KEY)
    return (said is not None and int(said) != field_id(path, field.type)) or any(
        _has_foreign((*path, name), part) for name, part in parts_of(field.type)
    )
