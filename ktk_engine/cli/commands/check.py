"""`ktk check`: whether every committed file is what the schema says, of a cube or of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ktk_engine.cli.console import listener, make_console, make_table, print_table, say, say_json
from ktk_engine.cli.find_store import find_store, find_stores, store_option
from ktk_engine.errors import DatasetNotFoundError
from ktk_engine.formatting import counted
from ktk_engine.messages import spoken
from ktk_engine.progress import progress_bar

if TYPE_CHECKING:
    from ktk_engine.maintain.check import Checked
    from ktk_engine.maintain.problem import Problem

_SHOWN = 50


@click.command()
@click.argument("cube", required=False)
@click.option("--deep", is_flag=True, help="Read every page of every file, not only the footers.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
@store_option
def check(cube: str | None, deep: bool, as_json: bool, store_url: str | None) -> None:
    """Compare the files of CUBE (or of all) with the log.

    The footer of every file is compared with what was committed, of a cube or table. Without a name
    all cubes and tables of all schemas are checked. Files of tagged versions, the log and what is
    published for Kartothek readers are looked at too. With --deep all data are read, so that any
    damage is found.

    Ends with 1 if anything was found, or if there is nothing to check. Nothing is changed.
    """
    from ktk_engine.maintain.check import check as check_one
    from ktk_engine.maintain.check import check_all

    if cube is not None:
        store = find_store(store_url, quiet=as_json)
        with progress_bar(f"checking {cube}") as tell:
            one = check_one(store, cube, deep=deep, progress=tell)
        _say([one], as_json, one.as_dict())
        return
    found: list[Checked] = []
    told: list[dict[str, Any]] = []
    stores = find_stores(store_url, quiet=as_json)
    for store in stores:
        with progress_bar(f"checking {store.url}") as tell:
            checked = list(check_all(store, deep=deep, progress=tell))
        found += checked
        told += [{"store": store.url, **item.as_dict()} for item in checked]
    _say(found, as_json, told)
    if not found:
        raise DatasetNotFoundError(
            f"There is no cube and no table in {', '.join(store.url for store in stores)}: nothing "
            "was checked. Correct the path, or build something there first."
        )


def _say(found: Sequence[Checked], as_json: bool, told: object) -> None:
    if as_json:
        say_json(told)
    else:
        for item in found:
            _show(item)
    if any(item.problems for item in found):
        raise click.exceptions.Exit(1)


def _show(found: Checked) -> None:
    what = (
        f"{found.name}, version {found.version}: {counted(found.datasets, 'dataset')}, "
        f"{counted(found.files, 'data file')} and "
        f"{counted(found.indices, 'index file')}{_tagged(found)} checked"
        f"{', every page of them' if found.deep else ''}"
    )
    if not found.problems:
        say(f"{what}; no problems.")
        return
    say(f"{what}; {counted(len(found.problems), 'problem')}.", style="bold")
    table = make_table(["dataset", "column", "expected", "found", "reason", "file"])
    general = [item for item in found.problems if not item.file]
    for item in [item for item in found.problems if item.file][:_SHOWN]:
        table.add_row(*_cells(item))
    if table.row_count:
        print_table(make_console(), table)
    if len(found.problems) - len(general) > _SHOWN:
        say(f"... {len(found.problems) - len(general) - _SHOWN} more; --json shows all.")
    for item in general:
        say(f"\n{item.dataset or found.name}: ", item.reason)


def _tagged(found: Checked) -> str:
    return f", {counted(found.tagged, 'tagged version')} included," if found.tagged else ""


def _cells(item: Problem) -> list[str]:
    reason = spoken(item.reason, listener().voice)
    cells = (item.dataset, item.column, item.expected, item.found, reason, item.file)
    return [cell or "-" for cell in cells]
