"""`ktk why`: what datasets were computed from, and what of it has changed."""

from __future__ import annotations

import click

from ktk_engine.cli.console import say, say_json
from ktk_engine.cli.find_store import find_store, open_other_store, store_option


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

    found = find_why(find_store(store_url, quiet=as_json), cube, dataset, open_other_store)
    if as_json:
        say_json([item.as_dict() for item in found])
        return
    for line in (line for item in found for line in item.lines):
        say(line)
