"""Rows as texts that can be compared, in whatever order they came."""

from __future__ import annotations

from typing import Any


def shown(rows: list[Any]) -> list[str]:
    return sorted(repr(tuple(row)) for row in rows)
