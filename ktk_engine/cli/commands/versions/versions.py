"""`ktk versions`: the versions of a cube or table that can still be read."""

from __future__ import annotations

import click

from ktk_engine.cli.commands.versions.history import show_history
from ktk_engine.cli.console import make_console, say, say_json
from ktk_engine.cli.find_store import find_store, store_option


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
