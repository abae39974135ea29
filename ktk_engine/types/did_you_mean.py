"""Suggests the name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ktk_engine.types.identifier import names_alike

_NEAR = 0.65  # of difflib's ratio; 0.6, its default, takes `country` for `amount`


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The nearest known name, preferring one that differs only by case; None if none is near."""
    names = sorted(set(known))
    if same := names_alike(name, names):
        return same[0]
    by_letters = {other.lower(): other for other in reversed(names)}
    near = difflib.get_close_matches(name.lower(), by_letters, n=1, cutoff=_NEAR)
    return by_letters[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str], form: str = "`{}`") -> str:
    """Suggest the nearest name in a sentence with a leading space; empty if no name is near."""
    near = nearest_name(name, known)
    return f" Did you mean {form.format(near)}?" if near is not None else ""


def did_you_mean_clause(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest name after a semicolon; see `did_you_mean`."""
    near = nearest_name(name, known)
    return f"; did you mean `{near}`?" if near is not None else ""
