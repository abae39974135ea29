"""`ktk set-properties`: sets user metadata of a dataset."""

from __future__ import annotations

import json
from typing import Any

import click

from ktk_engine.cli.console import say
from ktk_engine.cli.find_store import find_store, store_option


@click.command("set-properties")
@click.argument("cube")
@click.argument("pairs", metavar="KEY=VALUE...", nargs=-1)
@click.option("--dataset", help="The dataset of the cube; default: the seed dataset.")
@click.option("--unset", multiple=True, metavar="KEY", help="Remove a property; repeatable.")
@store_option
def set_properties(
    cube: str,
    pairs: tuple[str, ...],
    dataset: str | None,
    unset: tuple[str, ...],
    store_url: str | None,
) -> None:
    """Set properties of a dataset of CUBE, or of a table.

    Builds keep them, and Kartothek sees them. A VALUE is JSON if it can be read as such, else text.
    """
    from ktk_engine.catalog.find_scope import find_dataset, find_scope
    from ktk_engine.log.change.after_commit import after_commit
    from ktk_engine.maintain.properties import Notes, note

    if not pairs and not unset:
        raise click.UsageError("Give a property to set: KEY=VALUE, or --unset KEY.")
    store = find_store(store_url)
    state = find_scope(store, cube)
    uuid = cube
    if state.scope.kind == "cube":
        uuid = find_dataset(state, dataset or state.cube.seed_dataset)
    elif dataset:
        raise click.UsageError(f"{cube} is a table: it has no datasets.")
    notes = Notes(set=dict(map(_pair, pairs)), unset=unset)
    if note(store, uuid, notes, {"command": "ktk set-properties"}):
        with after_commit(cube):
            version = find_scope(store, cube).version
        say(f"Set properties of {uuid}: version {version}.")
    else:
        say(f"{uuid} already has these properties.")


def _pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.UsageError(f"{text!r} is not KEY=VALUE.")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
