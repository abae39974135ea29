"""Parses JSON that lies in a store, where anybody may have put it: strictly, and within limits.

Python's own parser lets the last one of equal keys win, takes NaN for a number, and unfolds a
file to many times its size.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from ktk_engine.errors import FormatError, UnsupportedFormatError

# What a document of four million files needs: it has 126 bytes and three values for each.
MAX_BYTES = 512 << 20
MAX_VALUES = 12_000_000
MAX_DEPTH = 64


def parse_json(data: bytes, what: str) -> Any:
    """Parse JSON.

    Args:
        data: the whole text, in UTF-8.
        what: what it is, for messages, for instance `log entry .ktk/.../42.json`.

    Returns:
        Maps, lists and plain values. No map had a key twice, and no number is NaN or infinite.

    Raises:
        FormatError: it is no such JSON.
        UnsupportedFormatError: it is larger, deeper or of more values than the limits.
    """
    check_size(len(data), MAX_BYTES, what)
    # Those within texts count as well, so this is an upper bound; exact counts cost more.
    check_count(sum(data.count(sign) for sign in (b",", b"{", b"[")), what)
    try:
        found = _DECODER.decode(data.decode("utf-8-sig"))
        check_depth(found, what)
    except UnicodeDecodeError as error:
        raise FormatError(f"{what} is not UTF-8 text: {error}") from error
    except RecursionError as error:
        raise too_deep(what) from error
    except ValueError as error:
        kind = UnsupportedFormatError if isinstance(error, _ConstantError) else FormatError
        raise kind(f"{what} is not valid JSON: {error}") from error
    return found


class _ConstantError(ValueError):
    """NaN or infinity, which Kartothek writes into metadata where a user put them."""


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a map of pairs.

    Raises:
        ValueError: a key occurs twice.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"a map has the key {twice!r} twice, and which value counts is unknown")
    return found


def check_size(size: int, largest: int, what: str) -> None:
    """Refuse what is too large.

    Raises:
        UnsupportedFormatError: there are more bytes than allowed.
    """
    if size > largest:
        raise UnsupportedFormatError(
            f"{what} has more than {largest >> 20} MiB, which is the limit"
        )


def check_count(values: int, what: str, largest: int = MAX_VALUES) -> None:
    """Refuse what has too many values.

    Raises:
        UnsupportedFormatError: there are more than allowed.
    """
    if values > largest:
        said = f"{what} has more than {largest:,} values, which is the limit"
        raise UnsupportedFormatError(said)


def check_depth(content: object, what: str) -> None:
    """Refuse maps and lists that are nested too deeply: writing them again would fail.

    Raises:
        UnsupportedFormatError: they are deeper than allowed.
    """
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
    """The error about maps and lists that are nested too deeply."""
    said = f"{what} is nested deeper than {MAX_DEPTH} levels, which is the limit"
    return UnsupportedFormatError(said)


def _refuse_constant(name: str) -> NoReturn:
    raise _ConstantError(f"{name} is not a number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large a number")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=unique_keys, parse_constant=_refuse_constant, parse_float=_finite
)
