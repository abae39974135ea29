"""Numbers of things, in the singular or the plural."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Write how many there are, for instance `1 row` or `2,000 rows`.

    Args:
        count: how many.
        noun: what one of them is called, maybe with a verb: `row repeats`.
        plural: what several are called; None adds an `s` to the noun.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
