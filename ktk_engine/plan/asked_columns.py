"""The columns that a query names, checked against those that there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ktk_engine.errors import QueryError
from ktk_engine.types.did_you_mean import nearest_name


def listed_names(of: str, what: str, asked: Sequence[str]) -> tuple[str, ...]:
    """Give a list of names in a certain order, without repetition.

    Args:
        of: what is asked, for messages: `cube nyc`.
        what: the argument that names them.
        asked: what was given.

    Raises:
        QueryError: it is no list, or names a column twice.
    """
    if isinstance(asked, str):
        raise QueryError(f"{what} must be a list of names, but is the text {asked!r}.")
    if isinstance(asked, set | frozenset | dict):
        raise QueryError(f"{what} needs an order, but is a {type(asked).__name__}: give a list.")
    names = tuple(asked)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise QueryError(
            f"Columns are asked for twice: {', '.join(repeated)} ({what} of a query of {of})."
        )
    return names


def check_known(of: str, asked: Iterable[str], known: Sequence[str]) -> None:
    """Refuse unknown columns.

    Args:
        of: what is asked, for messages: `Cube nyc`.
        asked: names.
        known: its columns.

    Raises:
        QueryError: with the nearest known name of each unknown one.
    """
    unknown = sorted(set(asked) - set(known))
    if unknown:
        raise QueryError(
            f"{of} has no column {with_hints(unknown, known)}. It has: {', '.join(known)}."
        )


def with_hints(unknown: Iterable[str], known: Sequence[str]) -> str:
    """Name unknown columns, each with the nearest known one."""
    hints = []
    for name in unknown:
        nearest = nearest_name(name, known)
        hints.append(f"`{name}`" + (f" (did you mean `{nearest}`?)" if nearest else ""))
    return ", ".join(hints)
