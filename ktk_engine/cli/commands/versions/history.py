"""`ktk history` and `ktk versions`: the commits of a cube or table, and those that can be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ktk_engine.cli.console import listener, make_console, make_table, print_table, say, say_json
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.messages import spoken

if TYPE_CHECKING:
    from rich.console import Console

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
    console = make_console()
    show_history(console, entries)
    for entry in entries:
        if entry.problem:
            said = spoken(entry.problem, listener().voice)
            console.print(f"version {entry.version}: {said}", soft_wrap=True)
    for item in find_notes(store, cube):
        console.print(item.origin, soft_wrap=True, highlight=False, markup=False)
    if any(entry.problem for entry in entries):
        raise click.exceptions.Exit(1)


def show_history(console: Console, entries: Sequence[HistoryEntry]) -> None:
    """Show commits as a table."""
    from ktk_engine.describe.history import HISTORY_HEADS, history_rows

    table = make_table(HISTORY_HEADS[:-2], HISTORY_HEADS[-2:])
    for row in history_rows(entries):
        table.add_row(*row)
    print_table(console, table)


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
        show_history(make_console(), entries)
    else:
        say(f"{cube} has one version without a number, since it has no log yet.")
