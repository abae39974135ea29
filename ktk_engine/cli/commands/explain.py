"""`ktk explain`: which files a query of a cube reads, and why it skips the others."""

from __future__ import annotations

import json

import click

from ktk_engine.cli.commands.query import names_in
from ktk_engine.cli.console import say
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.cli.version_options import version_options


@click.command()
@click.argument("cube")
@click.argument("where", required=False)
@click.option("--columns", help="Output columns, separated by commas; default: all.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
@version_options
@store_option
def explain(
    cube: str,
    where: str | None,
    columns: str | None,
    as_json: bool,
    version: int | str | None,
    timestamp: str | None,
    store_url: str | None,
) -> None:
    """Show which files a query of CUBE (or a table) opens.

    WHERE is a condition like "origin = 'JFK'".
    """
    from ktk_engine.api import Store
    from ktk_engine.plan.explain import explain as explain_plan
    from ktk_engine.plan.explain import explain_as_dict

    store = Store.of(find_store(store_url, quiet=as_json))
    asked = store.relation(cube, version=version, timestamp=timestamp)
    plan = asked.query(names_in(columns), where).plan
    if as_json:
        # Literals may be of any class; JSON gets their text.
        say(json.dumps(explain_as_dict(plan), indent=2, default=str))
    else:
        say(explain_plan(plan))
