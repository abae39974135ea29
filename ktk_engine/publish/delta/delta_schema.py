"""The Delta types of a dataset's columns: those that every reader gets right, or a refusal.

See docs/design/files-and-commits.md, Delta.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.errors import PublishError
from ktk_engine.messages import Message, joined
from ktk_engine.publish.stored_types import (
    PLAIN_TYPES,
    Inexpressible,
    different_types,
    in_other_unit,
    names_alike,
    refuse_large,
    schemas_in_use,
    stored_types,
)
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.types.type_class import class_name, is_list, unwrap

DeltaType: TypeAlias = str | dict[str, Any]

NTZ = "timestamp_ntz"
_INTEGERS = {8: "byte", 16: "short", 32: "integer", 64: "long"}
_OF_32_BITS: list[DeltaType] = ["byte", "short", "integer"]
_FORBIDDEN = frozenset(" ,;{}()\n\t=")


def delta_schema(snapshot: Snapshot) -> list[dict[str, Any]]:
    """A dataset's columns as fields of a Delta schema.

    Raises a `PublishError` that names all columns that Delta has no type or name for, or whose
    values some readers would misread.
    """
    fields: list[dict[str, Any]] = []
    problems: list[str] = _name_problems(snapshot.schema.names)
    schemas, comments = schemas_in_use(snapshot), snapshot.comments.columns
    for field in snapshot.schema:
        try:
            found = _column_type(snapshot, schemas, field)
        except Inexpressible as reason:
            problems.append(Message(f"column {field.name}: ", reason))
            continue
        comment = comments.get(field.name)
        fields.append(
            {
                "name": field.name,
                "type": found,
                "nullable": True,
                "metadata": {"comment": comment} if comment else {},
            }
        )
    if problems:
        raise PublishError(joined("; ", problems))
    return fields


def has_ntz(kind: DeltaType) -> bool:
    """Whether a type is or holds a timestamp without a zone."""
    if isinstance(kind, str):
        return kind == NTZ
    return any(has_ntz(part) for part in _parts(kind))


def _parts(kind: dict[str, Any]) -> list[DeltaType]:
    if kind["type"] == "struct":
        return [field["type"] for field in kind["fields"]]
    return [kind[key] for key in ("elementType", "keyType", "valueType") if key in kind]


def _name_problems(names: Sequence[str]) -> list[str]:
    forbidden = [
        f"column {name}: names with blanks or any of ,;{{}}()= are not allowed in Delta. Rename it"
        for name in names
        if not _FORBIDDEN.isdisjoint(name)
    ]
    return [*forbidden, *names_alike(names, "Delta")]


def _column_type(snapshot: Snapshot, schemas: list[pa.Schema], field: pa.Field) -> DeltaType:
    name = field.name
    if name in snapshot.partition_keys:
        return _partition_type(field.type)
    stored = stored_types(schemas, field)
    if not stored:
        return _of(field.type, top=True)
    kinds = [_of(t, top=True) for t in stored]
    if all(kind in _OF_32_BITS for kind in kinds):
        return max(kinds, key=lambda kind: _OF_32_BITS.index(kind))  # these look the same in files
    if any(kind != kinds[0] for kind in kinds):
        raise different_types(snapshot, stored)
    refuse_large(snapshot, name, stored)
    return kinds[0]


def _partition_type(t: pa.DataType) -> DeltaType:
    """A type for partition values, which are in the log: any type that holds them will do."""
    t = unwrap(t)
    if pat.is_binary(t):
        raise Inexpressible("Delta has no safe text for binary partition values")
    return _of(t, top=True)


def _of(t: pa.DataType, top: bool = False) -> DeltaType:
    """The Delta type of values that files hold as an Arrow type."""
    t = unwrap(t)
    if is_list(t):
        return {"type": "array", "elementType": _of(t.value_type), "containsNull": True}
    if pat.is_map(t):
        key, value = _of(t.key_type), _of(t.item_type)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if pat.is_struct(t):
        return {"type": "struct", "fields": [_struct_field(f) for f in _by_name(t)]}
    if pat.is_unsigned_integer(t):
        return _unsigned(t, top)
    if pat.is_signed_integer(t):
        return _INTEGERS[t.bit_width]
    if pat.is_decimal(t):
        return f"decimal({t.precision},{t.scale})"
    if pat.is_timestamp(t):
        return _timestamp(t)
    for test, name in _PLAIN:
        if test(t):
            return name
    raise Inexpressible(f"Delta has no type for the class {class_name(t)}{_fix(t)}")


def _fix(t: pa.DataType) -> str:
    if pat.is_float16(t):
        return " in 16 bits, which Spark cannot read. Store it as float32"
    return ". Store it as text or as a number" if pat.is_time(t) else ""


def _by_name(t: pa.StructType) -> list[pa.Field]:
    """Fields of a struct sorted by name, whatever order files have: readers go by names."""
    return sorted(t, key=lambda field: field.name)


def _struct_field(field: pa.Field) -> dict[str, Any]:
    if not _FORBIDDEN.isdisjoint(field.name):
        raise Inexpressible(
            f"the name {field.name} of its field is not allowed in Delta. Rename it"
        )
    return {"name": field.name, "type": _of(field.type), "nullable": True, "metadata": {}}


def _unsigned(t: pa.DataType, top: bool) -> DeltaType:
    """A type that holds all values, and that no reader confuses with one of the same bits."""
    if t.bit_width == 64:
        return "decimal(20,0)"
    if t.bit_width == 32 and not top:
        raise Inexpressible(
            f"whether all values of the {t} in it fit is not known. Store it as bigint or uint64"
        )
    return _INTEGERS[2 * t.bit_width]


def _timestamp(t: pa.TimestampType) -> str:
    if t.unit != "us":
        raise in_other_unit(t, "Delta")
    return NTZ if t.tz is None else "timestamp"


_PLAIN = (*PLAIN_TYPES, (pat.is_fixed_size_binary, "binary"))
