"""`ktk history`: what happened to a cube or table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ktk_engine.cli.console import listener, make_console, make_table, print_table, say, say_json
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.formatting import change, counted, moment
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

    entries = read_history(find_store(store_url, quiet=as_json), cube, limit)
    if as_json:
        say_json([entry.as_dict() for entry in entries])
        return
    if not entries:
        say(f"{cube} has no history yet: no commit of this library changed it.")
        return
    console = make_console()
    show_history(console, entries)
    for entry in entries:
        if entry.problem:
            said = spoken(entry.problem, listener().voice)
            console.print(f"version {entry.version}: {said}", soft_wrap=True)
    if any(entry.problem for entry in entries):
        raise click.exceptions.Exit(1)


def show_history(console: Console, entries: Sequence[HistoryEntry]) -> None:
    """Show commits as a table."""
    table = make_table(["version", "time", "change", "by"], ["rows", "files"])
    for entry in entries:
        for row in _rows(entry):
            table.add_row(*row)
    print_table(console, table)


def _rows(entry: HistoryEntry) -> list[list[str]]:
    """One row per changed dataset; version and time are in the first."""
    rows = [
        [f"{item.operation} {item.dataset}", change(item.rows_delta), change(item.files_delta)]
        for item in entry.changes
    ]
    if entry.deleted:
        rows.append([f"cleanup: {counted(entry.deleted, 'file')}", "", ""])
    if entry.problem:
        rows.append(["unknown: its log entry cannot be read", "", ""])
    rows = rows or [[entry.operation, "", ""]]
    by = _by(entry)
    version = " ".join([str(entry.version), *(f"({name})" for name in entry.tags)])
    first = [version, moment(entry.time) if entry.time else ""]
    return [
        [*(first if index == 0 else ["", ""]), text, by if index == 0 else "", *numbers]
        for index, (text, *numbers) in enumerate(rows)
    ]


def _by(entry: HistoryEntry) -> str:
    """Who committed it and why; the rest is for --json."""
    who = entry.history.get("node") or entry.history.get("command", "")
    return ": ".join(filter(None, (who, entry.history.get("reason", ""))))
