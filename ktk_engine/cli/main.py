"""The command `ktk`."""

from __future__ import annotations

import io
import sys
import warnings
from typing import Any

import click

from ktk_engine.cli.commands.adopt import adopt
from ktk_engine.cli.commands.build_class_archive import build_class_archive
from ktk_engine.cli.commands.changes import changes
from ktk_engine.cli.commands.check import check
from ktk_engine.cli.commands.cleanup import cleanup
from ktk_engine.cli.commands.compact import compact
from ktk_engine.cli.commands.copy import copy
from ktk_engine.cli.commands.delete import delete
from ktk_engine.cli.commands.diff import diff
from ktk_engine.cli.commands.drop import drop
from ktk_engine.cli.commands.explain import explain
from ktk_engine.cli.commands.index import index
from ktk_engine.cli.commands.info import info
from ktk_engine.cli.commands.publish import publish
from ktk_engine.cli.commands.query import query
from ktk_engine.cli.commands.rename import rename
from ktk_engine.cli.commands.report import report
from ktk_engine.cli.commands.set_properties import set_properties
from ktk_engine.cli.commands.stats import stats
from ktk_engine.cli.commands.versions.history import history, versions
from ktk_engine.cli.commands.versions.restore import restore, undrop
from ktk_engine.cli.commands.versions.tag import tag
from ktk_engine.cli.commands.why import why
from ktk_engine.cli.console import listener, warn
from ktk_engine.errors import KtkError


class KtkGroup(click.Group):
    """A group whose commands print one clean message for errors of this library."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with warnings.catch_warnings():
            warnings.showwarning = _say
            try:
                return super().invoke(ctx)
            except KtkError as error:
                raise click.ClickException(error.said(listener().voice)) from error


def _say(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as a line, without its place in the code."""
    warn(message.args[0] if isinstance(message, Warning) and message.args else message)


@click.group(cls=KtkGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--store",
    "store_url",
    metavar="PATH",
    help="The store; else KTK_STORE, else the profile of the dbt project in this folder.",
)
@click.version_option(package_name="ktk-engine", prog_name="ktk")
@click.pass_context
def main(ctx: click.Context, store_url: str | None) -> None:
    """Inspect, query and maintain cubes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a letter that the terminal lacks becomes ?
            stream.reconfigure(errors="replace")
    ctx.obj = {**(ctx.obj or {}), "store_url": store_url}


_COMMANDS = (
    *(info, stats, history, versions, why, changes, diff, tag, explain, query, report, check),
    *(
        delete,
        set_properties,
        compact,
        index,
        publish,
        copy,
        rename,
        adopt,
        drop,
        undrop,
        restore,
        cleanup,
        build_class_archive,
    ),
)
for _command in _COMMANDS:
    main.add_command(_command)
