"""Numbers and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

UNKNOWN = "?"


def number(value: int | None) -> str:
    """Give a number with thousands separators; `?` for one that is unknown."""
    return UNKNOWN if value is None else f"{value:,}"


def change(value: int | None) -> str:
    """Give a difference with its sign; `?` for one that is unknown."""
    return UNKNOWN if value is None else f"{value:+,}"


def size(count: int | None) -> str:
    """Give a number of bytes in decimal units, for instance `9.1 MB`."""
    if count is None:
        return UNKNOWN
    value = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def moment(time: datetime) -> str:
    """Give a time in UTC to the second."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
