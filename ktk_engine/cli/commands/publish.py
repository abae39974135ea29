"""`ktk publish`: lets other engines read datasets, by a Delta log beside the files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from ktk_engine.cli.console import make_console, make_table, print_table
from ktk_engine.cli.find_store import find_store, store_option

if TYPE_CHECKING:
    from ktk_engine.publish.publish_datasets import Published
    from ktk_engine.store.interface import ObjectStore


@click.command()
@click.argument("name", metavar="CUBE_OR_TABLE")
@click.option("--dataset", metavar="ID", help="Only this dataset of the cube.")
@click.option("--check", is_flag=True, help="Only compare; ends with 1 if they differ.")
@click.option("--stop", is_flag=True, help="Publish no more, and delete the Delta log.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
@store_option
def publish(
    name: str, dataset: str | None, check: bool, stop: bool, as_json: bool, store_url: str | None
) -> None:
    """Publish CUBE_OR_TABLE as Delta, from now on.

    A Delta log is written beside the files; no data are copied. What is published already is
    brought up to date, for instance where a run died.
    """
    from ktk_engine.publish.publish_datasets import check_publishing, publish_datasets

    if check and stop:
        raise click.UsageError("--check and --stop do not go together.")
    store = find_store(store_url, quiet=as_json)
    if stop:
        _stop(store, name, dataset, as_json)
        return
    if check:
        found = check_publishing(store, name, dataset)
    else:
        found = publish_datasets(store, name, dataset, {"command": "ktk publish"})
    if as_json:
        click.echo(json.dumps([item.as_dict() for item in found], indent=2))
    else:
        _show(store, found)
    if any(item.problem for item in found):
        raise click.exceptions.Exit(1)


def _stop(store: ObjectStore, name: str, dataset: str | None, as_json: bool) -> None:
    from ktk_engine.publish.publish_datasets import stop_publishing

    stopped = stop_publishing(store, name, dataset, {"command": "ktk publish --stop"})
    if as_json:
        click.echo(json.dumps(stopped))
        return
    for uuid in stopped:
        click.echo(f"{uuid} is not published as Delta any more.")
    if not stopped:
        click.echo(f"{name} is not published as Delta. Nothing was changed.")


def _show(store: ObjectStore, found: list[Published]) -> None:
    table = make_table(["dataset", "Delta table"], ["version", "Delta version"])
    for item in found:
        known = str(item.delta_version) if item.delta_version >= 0 else "-"
        table.add_row(item.dataset, store.uri(item.uuid), str(item.version), known)
    console = make_console()
    print_table(console, table)
    for item in found:
        if item.problem:
            console.print(f"\n{item.dataset}: {item.problem}.", soft_wrap=True)
