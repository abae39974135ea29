"""Type classes: which Arrow types mean the same, and the one type that holds them all.

The rules are those of docs/types.md and decisions 7 to 10: timestamps and times have microseconds,
decimals of one scale are one class, structs are compared by names and classes of fields, date64 is
date32. The large, view and fixed-size layouts of a type belong to its class.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from typing import Literal

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.errors import TypeClassError

ColumnRole = Literal["dimension", "partition", "index"]

# Arrow reads at most 64 levels from a stream and 100 from a parquet file, where lists have two.
MAX_NESTING = 32
MAX_DECIMAL_PRECISION = 38
MAX_WIDE_PRECISION = 76

# A cube of 20 datasets with 500 columns has few types, which are needed ten thousand times.
_REMEMBERED = 4096

# Names of UTC, in the time zone database and as programs write it.
_UTC = frozenset(
    (
        *("UTC", "UCT", "Universal", "Zulu", "Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu"),
        *("GMT", "GMT0", "GMT+0", "GMT-0", "Greenwich"),
        *("Etc/GMT", "Etc/GMT0", "Etc/GMT+0", "Etc/GMT-0", "Etc/Greenwich"),
        *("utc", "Z", "z", "+00:00", "-00:00", "+0000", "-0000", "+00", "-00"),
    )
)

# Extension types that mean the same as their storage type.
_TRANSPARENT_EXTENSIONS = frozenset({"arrow.json", "arrow.uuid"})


class TypeWithoutClass(pa.ExtensionType):  # type: ignore[misc]
    """A placeholder in schemas for a type of Spark without a class; no column ever has it.

    Spark hands some types over as others: a variant as a struct of bytes, a collated text as text.
    Arrow's schema alone would not show what was lost.
    `fix` is SQL that makes a value with a class, with `{}` in place of the column.
    """

    def __init__(self, spark_name: str, problem: str, fix: str) -> None:
        self._said = (spark_name, problem, fix)
        self.spark_name = spark_name
        self.problem = f"{spark_name} has no type class: {problem}"
        self.fix = fix
        # Arrow distinguishes such types only by their names.
        super().__init__(pa.null(), f"spark.{spark_name}")

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps(self._said).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> TypeWithoutClass:
        return cls(*json.loads(serialized))  # Arrow creates new instances

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeWithoutClass) and self._said == other._said

    def __hash__(self) -> int:
        return hash(self._said)

    def __str__(self) -> str:
        return self.spark_name


_LAYOUTS_OF_MEMORY = (
    pat.is_string_view,
    pat.is_binary_view,
    pat.is_list_view,
    pat.is_large_list_view,
    pat.is_run_end_encoded,
)


def is_list(t: pa.DataType) -> bool:
    """Whether it is a list in any of Arrow's layouts."""
    return bool(
        pat.is_list(t)
        or pat.is_large_list(t)
        or pat.is_fixed_size_list(t)
        or pat.is_list_view(t)
        or pat.is_large_list_view(t)
    )


def unwrap(t: pa.DataType) -> pa.DataType:
    """Strip dictionary and run-end encodings, and the extensions `arrow.json` and `arrow.uuid`."""
    while True:
        if pat.is_dictionary(t) or pat.is_run_end_encoded(t):
            t = t.value_type
        elif isinstance(t, pa.BaseExtensionType) and t.extension_name in _TRANSPARENT_EXTENSIONS:
            t = t.storage_type
        else:
            return t


def plain_type(t: pa.DataType) -> pa.DataType:
    """Strip layouts that few kernels of Arrow support, at any depth.

    These are encodings as in `unwrap`, views, decimals of 32 and 64 bits, and other names of UTC.
    """
    t = unwrap(t)
    if t.num_fields == 0:
        return _plain_scalar(t)
    if pat.is_list_view(t) or pat.is_large_list_view(t):
        return pa.list_(t.value_field.with_type(plain_type(t.value_type)))
    if pat.is_fixed_size_list(t) and t.list_size:  # Arrow cannot read what it writes of size 0
        return pa.list_(t.value_field.with_type(plain_type(t.value_type)), t.list_size)
    if pat.is_list(t) or pat.is_fixed_size_list(t):
        return pa.list_(t.value_field.with_type(plain_type(t.value_type)))
    if pat.is_large_list(t):
        return pa.large_list(t.value_field.with_type(plain_type(t.value_type)))
    if pat.is_struct(t):
        return pa.struct([f.with_type(plain_type(f.type)) for f in t])
    if pat.is_map(t):
        return pa.map_(
            t.key_field.with_type(plain_type(t.key_type)),
            t.item_field.with_type(plain_type(t.item_type)),
        )
    return t


# Nested types are not remembered: equal ones may have different metadata.
@lru_cache(_REMEMBERED)
def _plain_scalar(t: pa.DataType) -> pa.DataType:
    if pat.is_decimal(t) and t.bit_width < pa.decimal128(1).bit_width:
        return pa.decimal128(t.precision, t.scale)
    if pat.is_timestamp(t):
        return pa.timestamp(t.unit, canonical_zone(t.tz))
    if pat.is_string_view(t):
        return pa.string()
    return pa.binary() if pat.is_binary_view(t) else t


@lru_cache(_REMEMBERED)
def class_problem(t: pa.DataType) -> str | None:
    """Say why a type has no class, with the nested type at fault; None if it has one."""
    t = unwrap(t)
    if pat.is_duration(t) or pat.is_interval(t):
        return f"{t} has no type class: store a number together with its unit"
    if pat.is_union(t):
        return f"{t} has no type class: a column has one class, a union has several"
    if isinstance(t, TypeWithoutClass):
        return t.problem
    if isinstance(t, pa.BaseExtensionType):
        return f"{t} has no type class: cast it to its storage type {t.storage_type}"
    if is_list(t):
        return class_problem(t.value_type)
    if pat.is_map(t):
        return class_problem(t.key_type) or class_problem(t.item_type)
    if pat.is_struct(t):
        return _struct_problem(t)
    return None if _is_plain(t) else f"{t} has no type class"


@lru_cache(_REMEMBERED)
def normalize(t: pa.DataType) -> pa.DataType:
    """Give the container type of a type's class, which holds every value of the class.

    Types of one class have one container. The exception are decimals of more than 38 digits: they
    belong to the class of their scale, but need decimal256(76, scale), and `merge` gives the wider
    container. Fields of structs are ordered by name, and all nested fields are nullable. The
    function is idempotent. Raises a `TypeClassError` for a type without a class (duration,
    interval, union, unknown extension).
    Source: docs/types.md, Classes; decisions 7, 8, 9 and 10.
    """
    problem = class_problem(t)
    if problem is not None:
        raise TypeClassError(problem)
    return _container(t)


@lru_cache(_REMEMBERED)
def class_name(t: pa.DataType) -> str:
    """Name a type's class, such as "signed integer", "decimal(scale 2)" or "list of float".

    A type without a class gives "no class".
    """
    t = unwrap(t)
    if is_list(t):
        return f"list of {class_name(t.value_type)}"
    if pat.is_map(t):
        return f"map of {class_name(t.key_type)} to {class_name(t.item_type)}"
    if pat.is_struct(t):
        fields = sorted(t, key=lambda field: field.name)
        return f"struct<{', '.join(f'{f.name}: {class_name(f.type)}' for f in fields)}>"
    if class_problem(t) is not None:
        return "no class"
    return _plain_class_name(t)


def is_nested(t: pa.DataType) -> bool:
    """Whether it is a list, struct or map, also in a dictionary encoding."""
    return bool(pat.is_nested(unwrap(t)))


@lru_cache(_REMEMBERED)
def storage_problem(t: pa.DataType) -> str | None:
    """Say why a column of a type cannot be written; None if it can.

    Parquet has no empty structs. Spark's decimals have at most 38 digits and a scale from 0 to
    their precision. Values in an unknown time zone cannot be shown.
    """
    problem = class_problem(t)
    if problem is not None:
        return problem
    t = unwrap(t)
    if is_list(t):
        return storage_problem(t.value_type)
    if pat.is_map(t):
        return storage_problem(t.key_type) or storage_problem(t.item_type)
    if pat.is_struct(t):
        if t.num_fields == 0:
            return "a struct without fields cannot be stored"
        if any("\0" in f.name for f in t):
            return "names of fields cannot hold the character NUL, at which other programs cut them"
        return next((p for p in map(storage_problem, (f.type for f in t)) if p), None)
    if pat.is_decimal(t):
        return _decimal_problem(t)
    if _has_unknown_zone(t):
        return f"{t} cannot be stored: Python knows no such time zone"
    return None


def foreign_part(field: pa.Field) -> str | None:
    """What of a field no schema of this library has: an unknown time zone, or a layout of memory.

    None if it has neither. Raises a ValueError if a name or a zone is not UTF-8.
    """
    t, name = field.type, field.name
    if pat.is_primitive(t) and not pat.is_timestamp(t):  # almost all, of thousands of columns
        return None
    if any(is_layout(t) for is_layout in _LAYOUTS_OF_MEMORY):
        return f"{name} has the type {t}"
    if _has_unknown_zone(t):
        return f"{name} has an unknown time zone, {t.tz}"
    found = [foreign_part(t.field(number)) for number in range(t.num_fields)]
    return next(filter(None, found), None)


def _has_unknown_zone(t: pa.DataType) -> bool:
    return pat.is_timestamp(t) and t.tz is not None and not _is_zone(canonical_zone(t.tz))


def is_too_deep(t: pa.DataType) -> bool:
    """Whether a type has more than `MAX_NESTING` levels, where a map counts as two."""
    layer = [t]  # iterative, since a type may be deeper than Python's stack
    for _ in range(MAX_NESTING + 1):
        layer = [t.field(i).type for t in map(unwrap, layer) for i in range(t.num_fields)]
    return bool(layer)


def type_without_class(t: pa.DataType, path: str) -> tuple[str, TypeWithoutClass] | None:
    """Find the first of Spark's types without a class, and its path as in `address.zip`."""
    t = unwrap(t)
    if isinstance(t, TypeWithoutClass):
        return path, t
    parts: list[tuple[pa.DataType, str]] = []
    if is_list(t):
        parts = [(t.value_type, f"{path}[]")]
    elif pat.is_map(t):
        parts = [(t.key_type, f"{path}{{key}}"), (t.item_type, f"{path}{{value}}")]
    elif pat.is_struct(t):
        parts = [(f.type, f"{path}.{f.name}") for f in t]
    return next(filter(None, (type_without_class(*part) for part in parts)), None)


def role_problem(t: pa.DataType, role: ColumnRole) -> str | None:
    """Say why a column of a type cannot have a role; None if it can.

    Values of these columns are compared, sorted and looked up, so nested types and null are out.
    Decimals have no role, and times are neither dimensions nor indexes, because Kartothek has no
    index for them. Bool, float, binary, dates and timestamps with a zone may have every role
    (decision 4 restores them from paths).
    Source: Kartothek 5.3.0, `IndexBase.normalize_value` and its write functions.
    """
    problem = storage_problem(t)
    if problem is not None:
        return problem
    t = unwrap(t)
    name = class_name(t)
    if pat.is_nested(t):
        return f"{role} columns cannot be of class {name}: nested values have no order and no index"
    if pat.is_null(t):
        return f"a {role} column needs values: its class is null"
    if pat.is_decimal(t) or (pat.is_time(t) and role != "partition"):
        return f"{role} columns cannot be of class {name}: Kartothek has no index for this class"
    return None


def _struct_problem(t: pa.StructType) -> str | None:
    """Say why a struct has no class: a repeated field name, or a field without a class."""
    twice = [name for name, count in Counter(f.name for f in t).items() if count > 1]
    if twice:
        return f"{t} has no type class: it names the field {twice[0]} more than once"
    return next((p for p in map(class_problem, (f.type for f in t)) if p), None)


def _is_zone(name: str | None) -> bool:
    """Whether Arrow gives Python values in a time zone."""
    try:
        pa.scalar(0, pa.timestamp("us", name)).as_py()
    except (KeyError, ValueError, OSError):
        return False
    return True


def _decimal_problem(t: pa.DataType) -> str | None:
    """Say why a decimal cannot be stored."""
    if t.precision > MAX_DECIMAL_PRECISION:
        return f"{t} cannot be stored: Spark's decimals have at most 38 digits"
    if not 0 <= t.scale <= t.precision:
        return f"{t} cannot be stored: the scale must be between 0 and the precision"
    return None


def _is_plain(t: pa.DataType) -> bool:
    """Whether it is a flat type with a class."""
    return bool(
        pat.is_null(t)
        or pat.is_boolean(t)
        or pat.is_integer(t)
        or pat.is_floating(t)
        or pat.is_decimal(t)
        or pat.is_date(t)
        or pat.is_time(t)
        or pat.is_timestamp(t)
        or _is_string(t)
        or _is_binary(t)
    )


def _is_string(t: pa.DataType) -> bool:
    """Whether it is text in any layout."""
    return bool(pat.is_string(t) or pat.is_large_string(t) or pat.is_string_view(t))


def _is_binary(t: pa.DataType) -> bool:
    """Whether it is bytes in any layout."""
    return bool(
        pat.is_binary(t)
        or pat.is_large_binary(t)
        or pat.is_fixed_size_binary(t)
        or pat.is_binary_view(t)
    )


def _container(t: pa.DataType) -> pa.DataType:
    """The container of a type with a class."""
    t = unwrap(t)
    if is_list(t):
        return pa.list_(_container(t.value_type))
    if pat.is_map(t):
        return pa.map_(_container(t.key_type), _container(t.item_type))
    if pat.is_struct(t):
        fields = sorted(t, key=lambda field: field.name)
        return pa.struct([pa.field(f.name, _container(f.type)) for f in fields])
    return _plain_container(t)


def _plain_container(t: pa.DataType) -> pa.DataType:
    """The container of a flat type."""
    if pat.is_signed_integer(t):
        return pa.int64()
    if pat.is_unsigned_integer(t):
        return pa.uint64()
    if pat.is_floating(t):
        return pa.float64()
    if pat.is_decimal(t):
        if t.precision > MAX_DECIMAL_PRECISION:
            return pa.decimal256(MAX_WIDE_PRECISION, t.scale)
        return pa.decimal128(MAX_DECIMAL_PRECISION, t.scale)
    if _is_string(t):
        return pa.string()
    if pat.is_date(t):
        return pa.date32()
    if pat.is_time(t):
        return pa.time64("us")
    if pat.is_timestamp(t):
        return pa.timestamp("us", tz=canonical_zone(t.tz))
    if _is_binary(t):
        return pa.binary()
    return t


def canonical_zone(name: str | None) -> str | None:
    """The canonical name of a time zone: `UTC` for all its names."""
    return "UTC" if name in _UTC else name


# By container, where its own name is not that of the class.
_CLASS_NAMES: dict[pa.DataType, str] = {
    pa.int64(): "signed integer",
    pa.uint64(): "unsigned integer",
    pa.float64(): "float",
    pa.date32(): "date",
    pa.time64("us"): "time",
}


def _plain_class_name(t: pa.DataType) -> str:
    """Name the class of a flat type."""
    container = _plain_container(t)
    if pat.is_decimal(container):
        return f"decimal(scale {container.scale})"
    if pat.is_timestamp(container):
        return "timestamp" if container.tz is None else f"timestamp[{container.tz}]"
    return _CLASS_NAMES.get(container, str(container))
