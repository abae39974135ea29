"""Compares what a document gave with the types that the code declares."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

_Record = TypeVar("_Record")


def with_field_types(record: _Record) -> _Record:
    """Give a dataclass unchanged if its fields have the declared types, else raise a `TypeError`.

    A `Literal` is any text, because later versions may write others.
    """
    kind: type = type(record)
    for name, hint in _hints(kind).items():
        value = getattr(record, name)
        if not _fits(value, hint):
            raise TypeError(f"`{name}` is {str(value)[:100]!r}, of type {type(value).__name__}")
    return record


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: object, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return isinstance(value, str)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(item, parts[0]) for item in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(key, parts[0]) and _fits(item, parts[1]) for key, item in value.items()
        )
    if parts:  # a union
        return any(_fits(value, part) for part in parts)
    return type(value) is int if hint is int else isinstance(value, hint)
