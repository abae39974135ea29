"""`ktk history` and `ktk versions`: the commits of a cube or table, and those that can be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ktk_engine.cli.console import make_console, make_table, print_table, say, say_json
from ktk_engine.cli.find_store import find_store, store_option

if TYPE_CHECKING:
    from ktk_engine.describe.history import HistoryEntry


@click.command()
@click.argument("cube")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
@store_option
def history(cube: str, limit: int, as_json: bool, store_url: str | None) -> None:
    """List the commits of CUBE (or a table), newest first.

    Ends with 1 if a log entry is missing or damaged.
    """
    from ktk_engine.describe.history import read_history
    from ktk_engine.describe.why import find_notes

    store = find_store(store_url, quiet=as_json)
    entries = read_history(store, cube, limit)
    if as_json:
        say_json([entry.as_dict() for entry in entries])
        return
    if not entries:
        say(f"{cube} has no history yet: it has no commits of this library.")
        return
    _show_history(entries)
    for entry in entries:
        if entry.problem:
            say(f"version {entry.version}: ", entry.problem)
    for item in find_notes(store, cube):
        say(item.origin)
    if any(entry.problem for entry in entries):
        raise click.exceptions.Exit(1)


def _show_history(entries: Sequence[HistoryEntry]) -> None:
    """Show commits as a table."""
    from ktk_engine.describe.history import HISTORY_HEADS, history_rows

    table = make_table(HISTORY_HEADS[:-2], HISTORY_HEADS[-2:])
    for row in history_rows(entries):
        table.add_row(*row)
    print_table(make_console(), table)


@click.command()
@click.argument("cube")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
@store_option
def versions(cube: str, as_json: bool, store_url: str | None) -> None:
    """List the versions of CUBE (or a table) that are left.

    The newest comes first. Versions whose files a clean-up has deleted are not listed.
    """
    from ktk_engine.describe.history import read_versions

    entries = read_versions(find_store(store_url, quiet=as_json), cube)
    if as_json:
        say_json([entry.as_dict() for entry in entries])
    elif entries:
        _show_history(entries)
    else:
        say(f"{cube} has one version without a number, since it has no log yet.")
