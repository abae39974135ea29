"""The time zone of a session, as Python knows it."""

from __future__ import annotations

from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

# That of a session that nobody asked; no literal that needs it can be read.
UNKNOWN_ZONE = ""


def time_zone(name: str) -> tzinfo | None:
    """Give a session's time zone by its name; None for one that only Spark knows."""
    if name in ("UTC", "Z", "Etc/UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return None
