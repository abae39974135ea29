"""`ktk tag`: names versions, deletes names, lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ktk_engine.cli.console import flag, make_console, make_table, print_table, say, say_json, warn
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.cli.version_options import version_option

if TYPE_CHECKING:
    from ktk_engine.store.interface import ObjectStore


@click.command()
@click.argument("cube")
@click.argument("name", required=False)
@version_option("--version", "version", "Version to name; default: newest.")
@click.option("--delete", is_flag=True, help="Delete the name.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable; for the list.")
@store_option
def tag(
    cube: str,
    name: str | None,
    version: int | str | None,
    delete: bool,
    as_json: bool,
    store_url: str | None,
) -> None:
    """Give a version of CUBE (or a table) the NAME. Without NAME: list the names.

    A clean-up keeps named versions. The name takes the place of a number: ktk query CUBE --version
    NAME.
    """
    from ktk_engine.maintain.versions.tag import delete_tag, tag_version

    if name is None and (version is not None or delete):
        raise click.UsageError("Give the NAME as well.")
    if delete and version is not None:
        raise click.UsageError(
            f"{flag('delete')} needs no {flag('version', 'N')}: a name means one version."
        )
    store = find_store(store_url, quiet=as_json)
    if name is None:
        _list(store, cube, as_json)
        return
    said = {"command": "ktk tag"}
    if delete:
        done = delete_tag(store, cube, name, said)
        say(f"{name} no longer names version {done.version} of {cube}.")
    else:
        done = tag_version(store, cube, name, version, said)
        say(f"{name} names version {done.version} of {cube}.")
    warn(done.warning)


def _list(store: ObjectStore, cube: str, as_json: bool) -> None:
    from ktk_engine.catalog.find_scope import find_scope
    from ktk_engine.log.version import tags_of

    tags = tags_of(find_scope(store, cube, removed=True))
    if as_json:
        say_json(dict(tags))
        return
    if not tags:
        say(f"{cube} has no tags.")
        return
    table = make_table(["tag"], ["version"])
    for name, version in tags.items():
        table.add_row(name, str(version))
    print_table(make_console(), table)
