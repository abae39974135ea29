"""Reading what an expression of Arrow says.

Python has no way to look into one, but it can be pickled: then its calls, columns, literals and
options are the metadata and the columns of a record batch. What is not as expected counts as true.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.conditions.condition import Condition, IsNull, Operator, TrueCondition, mirrored
from ktk_engine.conditions.implied import (
    NULL,
    UNKNOWN,
    Implied,
    all_of,
    any_of,
    compared,
    either,
    listed,
    prefixed,
)
from ktk_engine.types.type_class import normalize

_COMPARISONS: dict[str, Operator] = {
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}


@dataclass(frozen=True)
class ReadExpression:
    """What is known about an expression.

    Attributes:
        condition: what every row fulfils for which it is true.
        columns: names of the columns that it reads.
    """

    condition: Condition
    columns: frozenset[str]


@dataclass(frozen=True)
class _Field:
    """A column; None for a field within one."""

    name: str | None


@dataclass(frozen=True)
class _Call:
    """A call of an Arrow function."""

    function: str
    arguments: tuple[_Node, ...]
    options: dict[str, Any]


_Node: TypeAlias = _Call | _Field | pa.Scalar


def read_expression(expression: pc.Expression, schema: pa.Schema) -> ReadExpression:
    """Read an expression.

    Args:
        expression: a filter.
        schema: the columns.

    Returns:
        What is known about it; all columns of `schema` if not even they can be read.
    """
    try:
        _, (stored, *_) = expression.__reduce__()
        batch = pa.ipc.open_file(stored).get_batch(0)
        steps = _metadata(batch.schema)
        names = [text for kind, text in steps if kind == "field_ref"]
        node = _parsed(iter(steps), batch)
    except (pa.ArrowException, ValueError, TypeError, LookupError):
        return ReadExpression(TrueCondition(), frozenset(schema.names))
    columns = frozenset(name for name in names if name in schema.names)
    return ReadExpression(_Reading(schema).predicate(node).true, columns)


@dataclass(frozen=True)
class _Reading:
    schema: pa.Schema

    def predicate(self, node: _Node) -> Implied:
        match node:
            case _Field(str(name)) if pat.is_boolean(normalize(self._type(name))):
                return compared(name, self._type(name), "=", pa.scalar(True))
            case _Call(function, arguments, options):
                return self._call(function, arguments, options)
            case pa.BooleanScalar() | pa.NullScalar():
                known = node.as_py()
                return NULL if known is None else all_of([]) if known else any_of([])
        return UNKNOWN

    def _call(self, name: str, given: tuple[_Node, ...], options: dict[str, Any]) -> Implied:
        match name, given:
            case "and_kleene" | "and", _:
                return all_of(map(self.predicate, given))
            case "or_kleene" | "or", _:
                return any_of(map(self.predicate, given))
            case "invert", (item,):
                return self.predicate(item).negated()
            case "if_else", (test, then, otherwise):
                return either(*map(self.predicate, (test, then, otherwise)))
            case "is_null", (_Field(str(column)),) if options.get("nan_is_null") is False:
                return Implied.exactly(IsNull(column))
            case "is_valid", (_Field(str(column)),):
                return Implied.exactly(IsNull(column)).negated()
            case "is_in", (_Field(str(column)),):
                values = options.get("value_set")
                if isinstance(values, pa.Array):
                    return listed(column, self._type(column), values, nulls_match=True)
            case "starts_with", (_Field(str(column)),) if options.get("ignore_case") is False:
                start = options.get("pattern")
                if isinstance(start, str | bytes):
                    text = start.decode() if isinstance(start, bytes) else start
                    return prefixed(column, self._type(column), pa.scalar(text))
            case _, (_Field(str(column)), pa.Scalar() as value) if name in _COMPARISONS:
                return self._compared(column, _COMPARISONS[name], value)
            case _, (pa.Scalar() as value, _Field(str(column))) if name in _COMPARISONS:
                return self._compared(column, mirrored(_COMPARISONS[name]), value)
        return UNKNOWN

    def _compared(self, column: str, op: Operator, value: pa.Scalar) -> Implied:
        t = self._type(column)
        known = compared(column, t, op, value)
        if op in (">", ">=") and pat.is_floating(normalize(t)):
            # NaN is the largest number here. In Arrow, no comparison with it is true.
            return Implied(known.true, TrueCondition())
        return known

    def _type(self, name: str) -> pa.DataType:
        return self.schema.field(name).type if name in self.schema.names else pa.null()


def _parsed(steps: Iterator[tuple[str, str]], batch: pa.RecordBatch) -> _Node:
    """Put the steps of an expression together."""
    kind, text = next(steps)
    return _node(kind, text, steps, batch)


def _node(kind: str, text: str, steps: Iterator[tuple[str, str]], batch: pa.RecordBatch) -> _Node:
    if kind == "literal":
        value: pa.Scalar = batch.column(int(text))[0]
        return value
    if kind == "field_ref":
        return _Field(text)
    if kind == "nested_field_ref":
        for _ in range(int(text)):
            _parsed(steps, batch)
        return _Field(None)
    if kind != "call":
        raise ValueError(f"an expression of Arrow has a part {kind!r}")
    arguments: list[_Node] = []
    options: dict[str, Any] = {}
    for part, said in steps:
        if part == "end":
            return _Call(text, tuple(arguments), options)
        if part == "options":
            options = _options(batch.column(int(said))[0])
        else:
            arguments.append(_node(part, said, steps, batch))
    raise ValueError("an Arrow expression has no end")


def _options(options: pa.StructScalar) -> dict[str, Any]:
    """The options of a call; lists stay Arrow's."""
    return {
        name: value.values if isinstance(value, pa.ListScalar) else value.as_py()
        for name, value in options.items()
    }


class _ArrowSchema(ctypes.Structure):
    """The beginning of a schema in Arrow's C data interface."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _metadata(schema: pa.Schema) -> list[tuple[str, str]]:
    """The metadata of a schema in its order, with keys as often as they occur.

    In Python, pyarrow gives each key only once; Arrow's C data interface gives all.
    """
    capsule = schema.__arrow_c_schema__()
    at = _ArrowSchema.from_address(_pointer(capsule, b"arrow_schema")).metadata

    def number() -> int:
        nonlocal at
        value = ctypes.c_int32.from_address(at).value
        at += 4
        return value

    def text() -> str:
        nonlocal at
        size = number()
        value = ctypes.string_at(at, size).decode()
        at += size
        return value

    return [(text(), text()) for _ in range(number())] if at else []
