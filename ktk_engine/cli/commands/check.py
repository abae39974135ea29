"""`ktk check`: whether every committed file is what the schema says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ktk_engine.cli.console import listener, make_console, make_table, print_table, say_json
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.cli.progress_bar import progress_bar
from ktk_engine.formatting import counted
from ktk_engine.messages import spoken

if TYPE_CHECKING:
    from ktk_engine.maintain.check import Checked
    from ktk_engine.maintain.problem import Problem

_SHOWN = 50


@click.command()
@click.argument("cube")
@click.option("--deep", is_flag=True, help="Read every page of every file, not only the footers.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
@store_option
def check(cube: str, deep: bool, as_json: bool, store_url: str | None) -> None:
    """Compare every file of CUBE (or of a table) with what was committed, by its footer.

    Files of tagged versions, the log and what is published for Kartothek readers are looked at too.
    With --deep all data are read, so that any damage is found.

    Ends with 1 if anything was found. Nothing is changed.
    """
    from ktk_engine.maintain.check import check as run_check

    store = find_store(store_url, quiet=as_json)
    with progress_bar("checking") as tell:
        found = run_check(store, cube, deep=deep, progress=tell)
    if as_json:
        say_json(found.as_dict())
    else:
        _show(found)
    if found.problems:
        raise click.exceptions.Exit(1)


def _show(found: Checked) -> None:
    console = make_console()
    what = (
        f"{found.name}, version {found.version}: {counted(found.datasets, 'dataset')}, "
        f"{counted(found.files, 'data file')} and "
        f"{counted(found.indices, 'index file')}{_tagged(found)} checked"
        f"{', every page of them' if found.deep else ''}"
    )
    if not found.problems:
        console.print(f"{what}; no problems.", soft_wrap=True)
        return
    console.print(
        f"{what}; {counted(len(found.problems), 'problem')}.", style="bold", soft_wrap=True
    )
    table = make_table(["dataset", "column", "expected", "found", "reason", "file"])
    general = [item for item in found.problems if not item.file]
    for item in [item for item in found.problems if item.file][:_SHOWN]:
        table.add_row(*_cells(item))
    if table.row_count:
        print_table(console, table)
    if len(found.problems) - len(general) > _SHOWN:
        console.print(f"... {len(found.problems) - len(general) - _SHOWN} more; --json shows all.")
    for item in general:
        said = spoken(item.reason, listener().voice)
        console.print(f"\n{item.dataset or found.name}: {said}", soft_wrap=True)


def _tagged(found: Checked) -> str:
    return f", {counted(found.tagged, 'tagged version')} included," if found.tagged else ""


def _cells(item: Problem) -> list[str]:
    reason = spoken(item.reason, listener().voice)
    cells = (item.dataset, item.column, item.expected, item.found, reason, item.file)
    return [cell or "-" for cell in cells]
