"""Options that choose an earlier version."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

_NUMBER = re.compile("[0-9]{1,99}")
_F = TypeVar("_F", bound=Callable[..., Any])


def _version(ctx: click.Context, param: click.Parameter, value: str | None) -> int | str | None:
    """Distinguish numbers of versions from tags, which never look like one."""
    return int(value) if value is not None and _NUMBER.fullmatch(value) else value


def version_options(command: _F) -> _F:
    """Add the options `--version` and `--timestamp` to a command."""
    command = click.option(
        "--timestamp", metavar="TIME", help="As of this moment, in ISO 8601; without a zone, UTC."
    )(command)
    text = "As of this commit, by its number or tag; ktk history lists them."
    return version_option("--version", "version", text)(command)


def version_option(name: str, parameter: str, text: str) -> Callable[[_F], _F]:
    """An option that names a version by its number or tag."""
    return click.option(name, parameter, callback=_version, metavar="N", help=text)
