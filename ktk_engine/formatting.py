"""Formats numbers, counts, sizes and times for people."""

from __future__ import annotations

import base64
import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from ktk_engine.errors import ConfigurationError

UNKNOWN = "?"
_UNITS = {"B": 0, "KB": 1, "MB": 2, "GB": 3, "TB": 4}
_SPANS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def number(value: int | None) -> str:
    """A number with thousands separators; `?` if unknown."""
    return UNKNOWN if value is None else f"{value:,}"


def change(value: int | None) -> str:
    """A difference with its sign; `?` if unknown."""
    return UNKNOWN if value is None else f"{value:+,}"


def size(count: int | None) -> str:
    """A number of bytes in decimal units, such as `9.1 MB`."""
    if count is None:
        return UNKNOWN
    value = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def parse_size(text: str) -> int:
    """Read a number of bytes in decimal units, such as `128MB`.

    Raises a `ConfigurationError` unless it is a size above zero.
    """
    match = re.fullmatch(r"(\d{1,12})\s*([kKMGT]?B)", str(text).strip())
    count = int(match[1]) * 1000 ** _UNITS[match[2].upper()] if match else 0
    if not count:
        raise ConfigurationError(f"{text!r} is not a size: write for instance 64MB, 128MB or 1GB.")
    return count


def parse_duration(text: str) -> timedelta:
    """Read a duration in one unit, such as `7 days`, `12 hours` or `90s`.

    Raises a `ConfigurationError` unless it is one.
    """
    unit = "|".join(f"{name[:-1]}s?|{letter}" for letter, name in _SPANS.items())
    match = re.fullmatch(rf"([0-9]{{1,6}}) ?({unit})", text.strip().lower())
    if match is None:
        raise ConfigurationError(
            f"{shortened(text)!r} is not a duration: write for instance 7 days, 12 hours or 90s."
        )
    return timedelta(**{_SPANS[match[2][0]]: int(match[1])})


def shortened(text: str, longest: int = 300) -> str:
    """A text as a message repeats it: its beginning, if it is long."""
    return text if len(text) <= longest else f"{text[:longest]}..."


def moment(time: datetime) -> str:
    """A time in UTC to the second."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def counted(count: int, one: str, several: str | None = None) -> str:
    """A count with its noun, such as `1 row` or `2,000 rows`; the default plural adds an `s`.

    The noun may have a verb: `row repeats`.
    """
    return f"{count:,} {noun(count, one, several)}"


def noun(count: float, one: str, several: str | None = None) -> str:
    """The noun for a number; see `counted`."""
    return one if count == 1 else several or f"{one}s"


def json_value(value: Any) -> Any:
    """A value of a row for JSON: dates as ISO texts, decimals as texts, bytes in base64."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {name: json_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
