"""`ktk query`: the rows of a query, on the terminal or in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ktk_engine.cli.console import say
from ktk_engine.cli.find_store import find_store, store_option
from ktk_engine.cli.version_options import version_options
from ktk_engine.progress import progress_bar

FORMATS = ("table", "csv", "json", "parquet")
TABLE_ROWS = 50
_F = TypeVar("_F", bound=Callable[..., Any])


def output_options(command: _F) -> _F:
    """Add the options `--format`, `--output` and `--memory-limit` to a command."""
    command = click.option(
        "--memory-limit",
        metavar="SIZE",
        help="For instance 4GB; default: a quarter of the memory.",
    )(command)
    command = click.option(
        "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file."
    )(command)
    return click.option(
        "--format",
        "format_",
        type=click.Choice(FORMATS),
        help="json: one object per line. Default: by the name of --output, else a table.",
    )(command)


@click.command()
@click.argument("cube")
@click.argument("where", required=False)
@click.option("--where", "also_where", metavar="WHERE", help="The same as the argument WHERE.")
@click.option("--columns", help="Output columns, separated by commas; default: all.")
@click.option("--limit", type=click.IntRange(min=0), help="Maximum number of rows.")
@output_options
@version_options
@store_option
def query(
    cube: str,
    where: str | None,
    also_where: str | None,
    columns: str | None,
    limit: int | None,
    format_: str | None,
    output: Path | None,
    memory_limit: str | None,
    version: int | str | None,
    timestamp: str | None,
    store_url: str | None,
) -> None:
    """Show the rows of CUBE (or a table) that fulfil WHERE.

    WHERE is a condition, such as "origin = 'JFK'"; by default all rows are selected.
    Rows of a cube are sorted by dimension columns, then partition columns. With --limit, only files
    that can hold one of the first rows are read. Without it, the first 50 rows are shown as a
    table. A result that does not fit into memory is refused.
    """
    from ktk_engine.api import Store
    from ktk_engine.cli.render_rows import print_rows, write_rows
    from ktk_engine.formatting import parse_size

    if where is not None and also_where is not None:
        raise click.UsageError("Give one condition: as the argument, or as --where.")
    where = where if also_where is None else also_where
    chosen_format = format_of(format_, output)
    most = None if memory_limit is None else parse_size(memory_limit)
    store = Store.of(find_store(store_url, quiet=chosen_format != "table"))
    shown = TABLE_ROWS if limit is None and chosen_format == "table" else None
    asked = store.relation(cube, version=version, timestamp=timestamp).query(
        names_in(columns), where, limit=limit if shown is None else shown + 1
    )
    with progress_bar("reading") as tell:
        rows = asked.to_arrow(engine="local", memory_limit=most, progress=tell)
    if shown is not None and rows.num_rows > shown:
        total = "" if asked.plan.rows is None else f" of {asked.plan.rows:,}"
        say(f"Showing the first {shown}{total} rows (see --limit).", err=True)
        rows = rows.slice(0, shown)
    if chosen_format == "table":
        print_rows(rows)
    else:
        write_rows(rows, chosen_format, output)


def names_in(text: str | None) -> list[str] | None:
    """The names in a list with commas; None for none."""
    return [name.strip() for name in text.split(",")] if text else None


def format_of(given: str | None, output: Path | None) -> str:
    """The requested format, from the option or the name of the file; a `ConfigurationError`."""
    from ktk_engine.errors import ConfigurationError

    by_name = output.suffix.removeprefix(".").lower() if output is not None else ""
    found = given or (by_name if by_name in FORMATS else "table")
    if found == "parquet" and output is None:
        raise ConfigurationError("Parquet goes to a file: give --output.")
    if found == "table" and output is not None:
        raise ConfigurationError(f"Specify a format for {output}: --format csv, json or parquet.")
    return found
