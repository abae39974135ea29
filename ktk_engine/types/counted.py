"""Numbers of things, in the singular or the plural."""

from __future__ import annotations


def counted(count: int, one: str, several: str | None = None) -> str:
    """Write how many there are, for instance `1 row` or `2,000 rows`.

    Args:
        count: how many.
        one: what one of them is called, maybe with a verb: `row repeats`.
        several: what several are called; None adds an `s`.
    """
    return f"{count:,} {noun(count, one, several)}"


def noun(count: float, one: str, several: str | None = None) -> str:
    """Give the form that stands behind a number; see `counted`."""
    return one if count == 1 else several or f"{one}s"
