"""`ktk diff`: how two versions, two schemas or two stores differ."""

from __future__ import annotations

import click

from ktk_engine.cli.commands.changes import tell
from ktk_engine.cli.commands.query import names_in
from ktk_engine.cli.console import say, say_json
from ktk_engine.cli.find_store import find_place, store_option
from ktk_engine.cli.version_options import version_option


@click.command()
@click.argument("cube")
@click.argument("other", required=False)
@version_option("--from", "before", "The older version; default: the one before --to.")
@version_option("--to", "after", "The newer version; default: the newest.")
@click.option("--columns", help="The columns that count, separated by commas; default: all.")
@click.option("--where", metavar="WHERE", help="Only rows that fulfil this condition.")
@click.option("--key", help="Columns that identify a row of a table, separated by commas.")
@click.option("--examples", type=click.IntRange(min=0), default=3, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
@click.option("--markdown", is_flag=True, help="For a comment on a pull request.")
@click.option("--exit-zero", is_flag=True, help="End with 0 even if they differ.")
@click.option(
    "--memory-limit", metavar="SIZE", help="For instance 4GB; default: a quarter of the memory."
)
@store_option
def diff(
    cube: str,
    other: str | None,
    before: int | str | None,
    after: int | str | None,
    columns: str | None,
    where: str | None,
    key: str | None,
    examples: int,
    as_json: bool,
    markdown: bool,
    exit_zero: bool,
    memory_limit: str | None,
    store_url: str | None,
) -> None:
    """Count what differs between two versions.

    They are versions of CUBE (or a table). With OTHER, CUBE is compared with it. Both may name a
    schema of the warehouse or a store: prod.nyc, /data/prod.nyc. Then --from is the version of
    CUBE, and --to that of OTHER.

    Ends with 0 if nothing differs, and with 1 if rows or columns differ.
    """
    from ktk_engine.api import Store

    quiet = as_json or markdown
    store, name = find_place(cube, store_url, quiet)
    if other is None:
        newer = Store.of(store).relation(name, version=after)
        if before is None and newer.version <= 1:
            raise click.UsageError(f"There is no version before {newer.version}: give --from.")
        older = newer.at(newer.version - 1 if before is None else before)
    else:
        older = Store.of(store).relation(name, version=before)
        store, name = find_place(other, store_url, quiet)
        newer = Store.of(store).relation(name, version=after)
    found = newer.changes(older, None, names_in(columns), where, key=names_in(key))
    tell(found)
    difference = found.difference(examples, memory_limit=memory_limit)
    if as_json:
        say_json(difference.as_dict())
    else:
        for line in difference.markdown() if markdown else difference.lines():
            say(line)
    if not (difference.is_empty or exit_zero):
        raise click.exceptions.Exit(1)
