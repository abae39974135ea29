"""Options that choose datasets of a cube by glob patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import click

from ktk_engine.cli.console import flag
from ktk_engine.errors import DatasetNotFoundError

_F = TypeVar("_F", bound=Callable[..., Any])


def dataset_options(command: _F) -> _F:
    """Add the options `--include` and `--exclude` to a command."""
    command = click.option(
        "--exclude", metavar="GLOB,..", help="Exclude the datasets that match, after --include."
    )(command)
    return click.option(
        "--include", metavar="GLOB,..", help="Only datasets that match; default: all."
    )(command)


def chosen_datasets(
    cube: str, known: Iterable[str], include: str | None, exclude: str | None
) -> list[str]:
    """Choose among the datasets of a cube.

    Args:
        cube: its name, for messages.
        known: ids of its datasets.
        include: patterns, separated by commas; None for all datasets.
        exclude: patterns of those to exclude; None for none.

    Returns:
        Their ids, in the order of `known`.

    Raises:
        DatasetNotFoundError: a pattern matches nothing, or nothing is left.
    """
    names = list(known)
    wanted = names if include is None else _matching(cube, names, include)
    unwanted = [] if exclude is None else _matching(cube, names, exclude)
    chosen = [name for name in names if name in wanted and name not in unwanted]
    if not chosen:
        raise DatasetNotFoundError(
            f"{flag('include', 'PATTERN')} and {flag('exclude', 'PATTERN')} leave no dataset of "
            f"{cube}. It has: {', '.join(names)}."
        )
    return chosen


def _matching(cube: str, names: list[str], patterns: str) -> set[str]:
    """The names that match one of the patterns; each pattern has to match."""
    found: set[str] = set()
    for pattern in (part.strip() for part in patterns.split(",")):
        matched = {name for name in names if fnmatchcase(name, pattern)}
        if not matched:
            raise DatasetNotFoundError(
                f"No dataset of {cube} matches {pattern!r}. It has: {', '.join(names)}."
            )
        found |= matched
    return found
