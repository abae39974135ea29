"""The options by which commands name an earlier version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])


def version_options(command: _F) -> _F:
    """Give a command the options `--version` and `--timestamp`."""
    command = click.option(
        "--timestamp", metavar="TIME", help="As of this moment, in ISO 8601; without a zone, UTC."
    )(command)
    return click.option(
        "--version", type=int, metavar="N", help="As of this commit; ktk history lists them."
    )(command)
