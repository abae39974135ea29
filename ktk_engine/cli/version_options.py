"""Options that choose an earlier version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])


def read_version(ctx: click.Context, param: click.Parameter, value: str | None) -> int | str | None:
    """Distinguish numbers of versions from tags, which never look like one."""
    if value is None or not (value.isascii() and value.isdecimal()):
        return value
    return int(value)


def version_options(command: _F) -> _F:
    """Add the options `--version` and `--timestamp` to a command."""
    command = click.option(
        "--timestamp", metavar="TIME", help="As of this moment, in ISO 8601; without a zone, UTC."
    )(command)
    return click.option(
        "--version",
        callback=read_version,
        metavar="N",
        help="As of this commit, by its number or tag; ktk history lists them.",
    )(command)
