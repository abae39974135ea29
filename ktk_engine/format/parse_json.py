"""Parses JSON from a store, strictly and within limits, since it may come from anyone.

Python's own parser lets the last of equal keys win, accepts NaN, and expands a file to many times
its size.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NoReturn

from ktk_engine.errors import FormatError, UnsupportedFormatError

# What a document of four million files needs: it has 126 bytes and three values for each.
MAX_BYTES = 512 << 20
MAX_VALUES = 12_000_000
MAX_DEPTH = 64


def parse_json(data: bytes, what: str) -> Any:
    """Parse JSON in UTF-8, without duplicate keys, half characters, NaN and infinite numbers.

    `what` names it in messages, for instance `log entry .ktk/.../42.json`. Raises a `FormatError`
    for anything else, and an `UnsupportedFormatError` beyond the limits of size, depth and values.
    """
    check_size(len(data), MAX_BYTES, what)
    # Includes those within texts: an upper bound, since exact counts cost more.
    check_count(sum(data.count(sign) for sign in (b",", b"{", b"[")), what)
    try:
        found = _DECODER.decode(data.decode("utf-8-sig"))
        check_depth(found, what)
        _check_characters(data, found)
    except UnicodeDecodeError as error:
        raise FormatError(f"{what} is not UTF-8 text: {error}") from error
    except RecursionError as error:
        raise too_deep(what) from error
    except ValueError as error:
        kind = UnsupportedFormatError if isinstance(error, _ConstantError) else FormatError
        raise kind(f"{what} is not valid JSON: {error}") from error
    return found


def render_json(content: object, **options: Any) -> bytes:
    """Render JSON in ASCII as `json.dumps` does.

    Raises a `FormatError` for half of a surrogate pair, which `parse_json` would refuse.
    """
    data = json.dumps(content, **options).encode()
    try:
        _check_characters(data, content)
    except UnicodeEncodeError as error:
        raise FormatError(f"The text to store has an invalid character: {error}") from error
    return data


def _check_characters(data: bytes, content: object) -> None:
    """Raise a ValueError if a text is no UTF-8; `data` has the content in any encoding."""
    if _HALF.search(data):
        json.dumps(content, ensure_ascii=False).encode()


class _ConstantError(ValueError):
    """NaN or infinity, which Kartothek writes if a user put them into metadata."""


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a map of pairs; raises a ValueError if a key occurs twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"a map has the key {twice!r} twice, so its value is ambiguous")
    return found


def check_size(size: int, largest: int, what: str) -> None:
    """Raise an `UnsupportedFormatError` above a number of bytes."""
    if size > largest:
        raise UnsupportedFormatError(
            f"{what} has more than {largest >> 20} MiB, which is the limit"
        )


def check_count(values: int, what: str, largest: int = MAX_VALUES) -> None:
    """Raise an `UnsupportedFormatError` above a number of values."""
    if values > largest:
        said = f"{what} has more than {largest:,} values, which is the limit"
        raise UnsupportedFormatError(said)


def check_depth(content: object, what: str) -> None:
    """Raise an `UnsupportedFormatError` for deep nesting, which could not be written again."""
    layer: list[Any] = [content]
    for _ in range(MAX_DEPTH):
        layer = (
            [
                value
                for item in layer
                for value in (item.values() if isinstance(item, Mapping) else item)
                if isinstance(value, (dict, list))
            ]
            if isinstance(content, (dict, list))
            else []
        )
        if not layer:
            return
    raise too_deep(what)


def too_deep(what: str) -> UnsupportedFormatError:
    """The error for maps and lists that are nested too deeply."""
    said = f"{what} is nested deeper than {MAX_DEPTH} levels, which is the limit"
    return UnsupportedFormatError(said)


def _refuse_constant(name: str) -> NoReturn:
    raise _ConstantError(f"{name} is not a number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large a number")
    return number


_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # in ASCII, also of whole characters
_DECODER = json.JSONDecoder(
    object_pairs_hook=unique_keys, parse_constant=_refuse_constant, parse_float=_finite
)
