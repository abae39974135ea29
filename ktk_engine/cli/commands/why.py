"""`ktk why`: what datasets were computed from, and what of it has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ktk_engine.cli.console import say, say_json
from ktk_engine.cli.find_store import find_store, open_other_store, store_option

if TYPE_CHECKING:
    from ktk_engine.store.interface import ObjectStore


@click.command()
@click.argument("cube")
@click.option("--dataset", metavar="NAME", help="Only this dataset of a cube.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
@store_option
def why(cube: str, dataset: str | None, as_json: bool, store_url: str | None) -> None:
    """Say what CUBE (or a table) was computed from.

    It also says what of that has changed since.
    """
    from ktk_engine.describe.why import find_why

    store = find_store(store_url, quiet=as_json)
    folder = store.url.rpartition("/")[0]

    def opened(name: str) -> ObjectStore:
        return open_other_store(name if "/" in name else f"{folder}/{name}")

    found = find_why(store, cube, dataset, opened)
    if as_json:
        say_json([item.as_dict() for item in found])
        return
    for line in (line for item in found for line in item.lines):
        say(line)
