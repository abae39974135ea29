"""The name that somebody probably meant, and how messages ask for it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ktk_engine.types.identifier import names_alike


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Find the name that somebody probably meant.

    Args:
        name: a name that is unknown.
        known: the names that exist.

    Returns:
        The nearest name, differing letter case first, or None if none is near.
    """
    names = sorted(set(known))
    if same := names_alike(name, names):
        return same[0]
    by_letters = {other.lower(): other for other in reversed(names)}
    near = difflib.get_close_matches(name.lower(), by_letters, n=1)
    return by_letters[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str], form: str = "`{}`") -> str:
    """Ask for the nearest name, as a sentence after another one.

    Args:
        name: a name that is unknown.
        known: the names that exist.
        form: how the message writes names.

    Returns:
        The question with a space before it; empty if no name is near.
    """
    near = nearest_name(name, known)
    return f" Did you mean {form.format(near)}?" if near is not None else ""


def did_you_mean_clause(name: str, known: Iterable[str]) -> str:
    """Ask for the nearest name within a sentence, after a semicolon; see `did_you_mean`."""
    near = nearest_name(name, known)
    return f"; did you mean `{near}`?" if near is not None else ""
