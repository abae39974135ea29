"""Compares what a document gave with the types that the code declares."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

_Record = TypeVar("_Record")


def with_field_types(record: _Record) -> _Record:
    """Give a dataclass unchanged if its fields have the declared types, else raise a `TypeError`.

    A `Literal` is any text, because later versions may write others.
    """
    kind: type = type(record)
    check_types(vars(record), _hints(kind))
    return record


def check_types(record: Mapping[str, Any], types: Mapping[str, Any]) -> None:
    """Raise a `KeyError` or `TypeError` unless a record has these names with these types."""
    for name, hint in types.items():
        if not _fits(value := record[name], hint):
            raise TypeError(f"`{name}` is {str(value)[:100]!r}, of type {type(value).__name__}")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(hint), get_args(hint)


def _fits(value: object, hint: Any) -> bool:
    if hint is str:  # by far the most
        return isinstance(value, str)
    if hint is int:
        return type(value) is int
    origin, parts = _parts(hint)
    if origin is Literal:
        return isinstance(value, str)
    if origin in (tuple, list):
        return isinstance(value, origin) and all(_fits(item, parts[0]) for item in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(key, parts[0]) and _fits(item, parts[1]) for key, item in value.items()
        )
    if origin is UnionType:
        return any(_fits(value, part) for part in parts)
    if hint is datetime:
        return isinstance(value, datetime) and value.tzinfo is not None
    return hint is Any or isinstance(value, origin or hint)
