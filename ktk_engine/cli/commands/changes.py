"""`ktk changes`: the rows that differ between two versions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ktk_engine.cli.commands.query import TABLE_ROWS, format_of, names_in, output_options
from ktk_engine.cli.console import say
from ktk_engine.cli.find_store import find_place, store_option
from ktk_engine.cli.version_options import version_option

if TYPE_CHECKING:
    import pyarrow as pa

    from ktk_engine.api.changes import Changes


@click.command()
@click.argument("cube")
@version_option("--after", "after", "The older version, by its number or tag. Required.")
@version_option("--until", "until", "The newer version; default: the newest.")
@click.option("--columns", help="The columns that count, separated by commas; default: all.")
@click.option("--where", metavar="WHERE", help="Only rows that fulfil this condition.")
@click.option("--key", help="Columns that identify a row of a table, separated by commas.")
@output_options
@store_option
def changes(
    cube: str,
    after: int | str | None,
    until: int | str | None,
    columns: str | None,
    where: str | None,
    key: str | None,
    format_: str | None,
    output: Path | None,
    memory_limit: str | None,
    store_url: str | None,
) -> None:
    """Show the rows that differ between two versions.

    They are versions of CUBE (or a table), which may name a schema of the warehouse or a store:
    prod.nyc, /data/prod.nyc. The column _change_type says what became of a row:
    insert, delete, or update_preimage and update_postimage for its old and new values. Only files
    that one version lacks are read. As a table, the first 50 rows are shown.
    """
    from ktk_engine.api import Store
    from ktk_engine.cli.render_rows import print_rows, write_rows

    if after is None:
        raise click.UsageError("Give the older version: --after.")
    chosen_format = format_of(format_, output)
    store, name = find_place(cube, store_url, chosen_format != "table")
    found = (
        Store.of(store)
        .relation(name, version=until)
        .changes(after, None, names_in(columns), where, key=names_in(key))
    )
    tell(found)
    if chosen_format != "table":
        write_rows(found.to_reader(memory_limit=memory_limit), chosen_format, output)
        return
    rows = _first(found, memory_limit)
    if rows.num_rows > TABLE_ROWS:
        say(f"Showing the first {TABLE_ROWS} rows (see --output).", err=True)
    if rows.num_rows:
        print_rows(rows.slice(0, TABLE_ROWS))
    else:
        say("No row differs.")


def tell(found: Changes) -> None:
    """Say on standard error what is read, and what is not compared."""
    for line in found.explain().splitlines():
        say(line, err=True)


def _first(found: Changes, memory_limit: str | None) -> pa.Table:
    """A few rows, one more than are shown."""
    import pyarrow as pa

    reader = found.to_reader(memory_limit=memory_limit)
    batches, count = [], 0
    for batch in reader:
        batches.append(batch)
        count += batch.num_rows
        if count > TABLE_ROWS:
            break
    return pa.Table.from_batches(batches, reader.schema).slice(0, TABLE_ROWS + 1)
