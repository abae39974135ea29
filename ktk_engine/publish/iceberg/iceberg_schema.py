"""The Iceberg types of a dataset's columns: those that every reader gets right, or a refusal.

See docs/design/files-and-commits.md, Iceberg.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    stored_types,
)
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.types.field_id import field_id, foreign_ids, parts_of
from ktk_engine.types.type_class import class_name, is_list, unwrap

IcebergType: TypeAlias = str | dict[str, Any]
Path: TypeAlias = tuple[str, ...]  # names of a column, its field, the field's field

# Iceberg's metadata columns: readers fill them themselves (iceberg-rust), or refuse a table with a
# column of such a name (Spark, Trino).
RESERVED = (
    "_deleted",
    "_file",
    "_last_updated_sequence_number",
    "_partition",
    "_pos",
    "_row_id",
    "_spec_id",
)


def iceberg_columns(snapshot: Snapshot, schemas: list[pa.Schema]) -> list[dict[str, Any]]:
    """A dataset's columns as fields of an Iceberg schema.

    `schemas` are those of `schemas_in_use`. Raises a `PublishError` that names all columns that
    Iceberg cannot express, or whose values some readers would misread.
    """
    names = snapshot.schema.names
    reserved = [name for name in names if name in RESERVED]
    problems = [
        f"column {name}: Iceberg keeps this name for itself. Rename it" for name in reserved
    ]
    problems += [*names_alike(names, "Iceberg"), *_paths_alike(snapshot.schema, schemas)]
    fields = []
    comments = snapshot.comments.columns
    foreign = {name for schema in schemas for name in foreign_ids(schema)}
    for field in snapshot.schema:
        try:
            if field.name in foreign:
                raise Inexpressible(
                    "another program gave it other field ids in files than this library does. "
                    "Rewrite them: rebuild the dataset"
                )
            found = _column(snapshot, schemas, field)
        except Inexpressible as reason:
            problems.append(Message(f"column {field.name}: ", reason))
            continue
        comment = comments.get(field.name)
        fields.append(found | ({"doc": comment} if comment else {}))
    if problems:
        raise PublishError(joined("; ", problems))
    return fields


def widest(first: IcebergType, second: IcebergType) -> IcebergType | None:
    """The type to which Iceberg's readers widen values of two types; None if there is none."""
    if first == second:
        return first
    if not (isinstance(first, str) and isinstance(second, str)):
        return None
    for narrow, wide in (("int", "long"), ("float", "double")):
        if {first, second} == {narrow, wide}:
            return wide
    digits = [_digits(kind) for kind in (first, second)]
    if None not in digits and digits[0][1] == digits[1][1]:  # type: ignore[index]
        return max((first, second), key=lambda kind: _digits(kind) or (0, 0))
    return None


def decimal_digits(kind: str) -> tuple[int, int]:
    """Precision and scale of a decimal type."""
    found = _digits(kind)
    assert found is not None
    return found


def _digits(kind: str) -> tuple[int, int] | None:
    if not kind.startswith("decimal("):
        return None
    precision, scale = kind[len("decimal(") : -1].split(",")
    return int(precision), int(scale)


def _field(path: Path, t: pa.DataType, top: bool = False) -> dict[str, Any]:
    kind = _of(t, path, top)
    return {"id": field_id(path, t), "name": path[-1], "required": False, "type": kind}


def _paths_alike(schema: pa.Schema, stored: Iterable[pa.Schema]) -> Iterator[str]:
    """Describe columns and fields with the same path: readers look them up by it.

    Letter case counts only in files.
    """
    seen: dict[str, Path] = {}
    for parts in _paths((field.name, field) for field in schema):
        other = seen.setdefault(".".join(parts).lower(), parts)
        if other != parts and len(parts) + len(other) > 2:  # else `names_alike` has it
            yield f"{_shown(parts)}: Iceberg confuses it with {_shown(other)}. Rename one"
    known = {".".join(parts): parts for parts in seen.values()}
    there = set(schema.names)
    gone = (item for file in stored for item in file if item.name not in there)
    for parts in _paths((field.name, field) for field in gone):
        if (other := known.setdefault(".".join(parts), parts)) != parts:
            yield (
                f"files still have {_shown(parts)}, which was dropped, and Iceberg confuses it "
                f"with {_shown(other)}. Rewrite them: rebuild the dataset"
            )


def _paths(named: Iterable[tuple[str, pa.Field]], before: Path = ()) -> Iterator[Path]:
    for name, field in named:
        yield (*before, name)
        yield from _paths(parts_of(field.type), (*before, name))


def _shown(parts: Path) -> str:
    *above, name = parts
    return f"field {name} of {'.'.join(above)}" if above else f"column {name}"


def _column(snapshot: Snapshot, schemas: list[pa.Schema], field: pa.Field) -> dict[str, Any]:
    name = field.name
    stored = [] if name in snapshot.partition_keys else stored_types(schemas, field)
    if not stored:
        t = unwrap(field.type)
        if name in snapshot.partition_keys and pat.is_floating(t):
            raise Inexpressible(
                "some readers round floating partition values (pyiceberg). Partition by another "
                "column"
            )
        # In no file, so any type that holds all values of the class will do.
        return _field((name,), pa.decimal128(20) if pat.is_uint64(t) else t, top=True)
    found, *others = (_field((name,), t, top=True) for t in stored)
    for other in others:
        wider = widest(found["type"], other["type"])
        if wider is None:
            raise different_types(snapshot, stored)
        found["type"] = wider
    refuse_large(snapshot, name, stored)
    return found


def _of(t: pa.DataType, path: Path, top: bool = False) -> IcebergType:
    """The Iceberg type of values that files hold as an Arrow type."""
    t = unwrap(t)
    if is_list(t) or pat.is_map(t):
        kind: dict[str, Any] = {"type": "map" if pat.is_map(t) else "list"}
        for name, part in parts_of(t):
            found = _field((*path, name), part.type)
            kind |= {f"{name}-id": found["id"], name: found["type"]}
            kind |= {} if name == "key" else {f"{name}-required": False}
        return kind
    if pat.is_struct(t):
        by_name = sorted(t, key=lambda field: field.name)  # readers go by names
        return {"type": "struct", "fields": [_field((*path, f.name), f.type) for f in by_name]}
    if pat.is_integer(t):
        return _integer(t, top)
    if pat.is_decimal(t):
        return f"decimal({t.precision}, {t.scale})"
    if pat.is_fixed_size_binary(t):
        return f"fixed[{t.byte_width}]"
    if pat.is_timestamp(t) or pat.is_time(t):
        return _in_microseconds(t)
    for test, name in PLAIN_TYPES:
        if test(t):
            return name
    fix = " in 16 bits. Store it as float32" if pat.is_float16(t) else ""
    raise Inexpressible(f"Iceberg has no type for the class {class_name(t)}{fix}")


def _integer(t: pa.DataType, top: bool) -> str:
    """A type that holds all values, and that no reader confuses with one of the same bits."""
    if pat.is_uint64(t):
        raise Inexpressible(
            "Iceberg has no unsigned numbers, and readers would read those from 2^63 on as "
            "negative. Store it as decimal(20,0) or bigint"
        )
    if pat.is_uint32(t) and not top:
        raise Inexpressible(
            f"whether all values of the {t} in it fit is not known. Store it as bigint"
        )
    return "long" if t.bit_width == 64 or pat.is_uint32(t) else "int"


def _in_microseconds(t: pa.DataType) -> str:
    if t.unit != "us":
        raise in_other_unit(t, "Iceberg")
    if pat.is_time(t):
        return "time"
    return "timestamp" if t.tz is None else "timestamptz"
