"""Compares two types by class: the first difference with its path, or the common container."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.errors import TypeClassError
from ktk_engine.types.type_class import class_name, class_problem, is_list, normalize, unwrap

_INTEGER_AND_FLOAT = "an integer cannot hold 0.5, and float64 cannot hold 9007199254740993 exactly"

# Pairs of class families and why they do not mix, in the words of docs/types.md
# ("This section points out why we treat certain type classes as incompatible").
_REASONS: dict[frozenset[str], str] = {
    frozenset({"signed", "unsigned"}): (
        "int64 cannot hold values above 9223372036854775807, uint64 cannot hold negative numbers"
    ),
    frozenset({"signed", "float"}): _INTEGER_AND_FLOAT,
    frozenset({"unsigned", "float"}): _INTEGER_AND_FLOAT,
    frozenset({"string", "binary"}): r"b'\xff' is not UTF-8 text",
    frozenset({"bool", "signed"}): (
        "a bool is not a number: it is not always clear that false is 0 and true is 1"
    ),
    frozenset({"bool", "unsigned"}): (
        "a bool is not a number: it is not always clear that false is 0 and true is 1"
    ),
    frozenset({"decimal", "float"}): "float64 has no exact form of the decimal 0.1",
    frozenset({"date", "timestamp"}): (
        "a date is a day, a timestamp has a time of day: 2019-05-21 12:30:00 is not a date"
    ),
    frozenset({"date", "time"}): "a date is a day, a time is a time of any day",
    frozenset({"time", "timestamp"}): "a time is a time of any day, a timestamp has its day",
}


@dataclass(frozen=True)
class Mismatch:
    """The first place where two types have different classes."""

    # as in `address.zip` (struct field), `tags[]` (list element) or `m{key}` and `m{value}` (map);
    # empty for the type itself
    path: str
    left: pa.DataType  # the first type at this place
    right: pa.DataType
    reason: str  # why they do not mix


def mismatch(left: pa.DataType, right: pa.DataType, path: str = "") -> Mismatch | None:
    """Compare two types by class; None if they are compatible.

    Symmetric up to the order of `left` and `right`; transitive apart from null, which is compatible
    with everything at any depth. `path` is the column's name.
    """
    problem = class_problem(left) or class_problem(right)
    if problem is not None:
        return Mismatch(path, left, right, problem)
    if left.equals(right):
        return None
    return _compare(unwrap(left), unwrap(right), path)


def merge(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Give the container that holds the values of both types, in normal form.

    Null takes the other's class at any depth (decision 11); decimals get the wider precision
    (decision 8). Raises a `TypeClassError` if the types are incompatible.
    """
    found = mismatch(left, right)
    if found is not None:
        place = f" at {found.path.lstrip('.')}" if found.path else ""
        raise TypeClassError(
            f"{class_name(found.left)} ({found.left}) and {class_name(found.right)} "
            f"({found.right}) are incompatible{place}: {found.reason}"
        )
    return _merged(normalize(left), normalize(right))


def wider(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Give the one of two compatible types that holds all values of both, else `merge` them.

    Lists of two fixed sizes become one of variable size.
    """
    if _holds(left, right):
        return left
    if _holds(right, left):
        return right
    if is_list(left) and is_list(right):
        return pa.list_(wider(left.value_type, right.value_type))
    return merge(left, right)


def _holds(t: pa.DataType, other: pa.DataType) -> bool:
    """Whether a type holds all values of a compatible one; layouts of variable size hold alike."""
    t, other = unwrap(t), unwrap(other)
    if pat.is_null(other) or t.equals(other):
        return True
    if pat.is_null(t):
        return False
    if pat.is_fixed_size_list(t) and not (
        pat.is_fixed_size_list(other) and t.list_size == other.list_size
    ):
        return False
    if is_list(t):
        return _holds(t.value_type, other.value_type)
    if pat.is_map(t):
        return _holds(t.key_type, other.key_type) and _holds(t.item_type, other.item_type)
    if pat.is_struct(t):
        return all(_holds(f.type, other.field(f.name).type) for f in t)
    if pat.is_decimal(t):
        return bool(t.precision >= other.precision)
    if pat.is_integer(t) or pat.is_floating(t):
        return bool(t.bit_width >= other.bit_width)
    return class_name(t) == "string" or t.equals(normalize(t))


def _compare(left: pa.DataType, right: pa.DataType, path: str) -> Mismatch | None:
    """Compare two types that have a class."""
    left, right = unwrap(left), unwrap(right)
    if pat.is_null(left) or pat.is_null(right):
        return None
    if is_list(left) and is_list(right):
        return _compare(left.value_type, right.value_type, f"{path}[]")
    if pat.is_map(left) and pat.is_map(right):
        return _compare(left.key_type, right.key_type, f"{path}{{key}}") or _compare(
            left.item_type, right.item_type, f"{path}{{value}}"
        )
    if pat.is_struct(left) and pat.is_struct(right):
        return _compare_structs(left, right, path)
    if class_name(left) == class_name(right):
        return None
    return Mismatch(path, left, right, _reason(left, right))


def _compare_structs(left: pa.StructType, right: pa.StructType, path: str) -> Mismatch | None:
    """Compare structs by the names and classes of their fields (decision 9)."""
    ours, theirs = {f.name for f in left}, {f.name for f in right}
    if ours != theirs:
        lacking = ", ".join(f"`{name}`" for name in sorted(ours ^ theirs))
        return Mismatch(path, left, right, f"the fields differ: only one side has {lacking}")
    for name in sorted(ours):
        at = f"{path}.{name}" if path else name
        found = _compare(left.field(name).type, right.field(name).type, at)
        if found is not None:
            return found
    return None


def family(t: pa.DataType) -> str:
    """Name the class without its parameters."""
    if is_list(t):
        return "list"
    return class_name(t).partition(" ")[0].partition("[")[0].partition("(")[0].partition("<")[0]


def _reason(left: pa.DataType, right: pa.DataType) -> str:
    """Say why two classes do not mix, with an example of a number that does not fit."""
    known = _REASONS.get(frozenset({family(left), family(right)}))
    if known is not None:
        return known
    if pat.is_timestamp(left) and pat.is_timestamp(right):
        return (
            f"{class_name(left)} and {class_name(right)} are different type classes: "
            "the time zone has semantic meaning"
        )
    if pat.is_decimal(left) and pat.is_decimal(right):
        low, high = sorted((left.scale, right.scale))
        return f"a decimal of scale {low} cannot hold {_last_digit(high)}"
    return f"{class_name(left)} and {class_name(right)} are different type classes"


def _last_digit(scale: int) -> str:
    """The smallest step of a decimal, which a smaller scale cannot hold."""
    return f"0.{'0' * (scale - 1)}1" if scale > 0 else f"1{'0' * -scale}"


def _merged(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Merge two compatible container types."""
    if pat.is_null(left) or left.equals(right):
        return right
    if pat.is_null(right):
        return left
    if pat.is_list(left):
        return pa.list_(_merged(left.value_type, right.value_type))
    if pat.is_map(left):
        key = _merged(left.key_type, right.key_type)
        return pa.map_(key, _merged(left.item_type, right.item_type))
    if pat.is_struct(left):
        fields = [pa.field(f.name, _merged(f.type, right.field(f.name).type)) for f in left]
        return pa.struct(fields)
    # Only decimals have two containers in one class; the wide one holds both.
    return left if pat.is_decimal256(left) else right
