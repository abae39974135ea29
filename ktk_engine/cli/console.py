"""The console of the commands: colours for people, plain text of 100 columns for pipes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPE_COLUMNS = 100
_BETWEEN = "   "  # what is between two columns


def warn(warning: str) -> None:
    """Say on standard error what a person should know of what was done; empty for nothing."""
    if warning:
        click.echo(f"Warning: {warning}", err=True)


def make_console() -> Console:
    """Make the console for standard output; names from stores are never read as markup."""
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, emoji=False, width=PIPE_COLUMNS)
    return console


def print_table(console: Console, table: Table, with_empty: bool = False) -> None:
    """Print a table that fits; of one that would break words, a block of lines for each row.

    Args:
        console: where to.
        table: the table.
        with_empty: whether a block has a line for an empty cell too.
    """
    columns = [
        (str(column.header), [str(cell) for cell in column.cells]) for column in table.columns
    ]
    narrowest = [
        _width([header, *cells], bool(column.no_wrap))
        for column, (header, cells) in zip(table.columns, columns, strict=True)
    ]
    widest = [_width([header, *cells], True) for header, cells in columns]
    spare = console.width - sum(narrowest) - len(_BETWEEN) * (len(columns) - 1)
    if spare >= 0:
        for column, width in zip(table.columns, _shared(spare, narrowest, widest), strict=True):
            column.width = width
        console.print(table)
        return
    for row in range(table.row_count):
        if row:
            console.print()
        for header, cells in columns:
            if cells[row] or with_empty:
                console.print(f"{header}: {cells[row]}".rstrip(), soft_wrap=True)


def _shared(spare: int, narrowest: list[int], widest: list[int]) -> list[int]:
    """Widths of columns; left alone, rich takes from the widest until it breaks their words."""
    widths = list(narrowest)
    wanting = sorted(range(len(widths)), key=lambda index: widest[index] - narrowest[index])
    for done, index in enumerate(wanting):
        more = min(widest[index] - narrowest[index], spare // (len(wanting) - done))
        widths[index] += more
        spare -= more
    return widths


def _width(texts: list[str], no_wrap: bool) -> int:
    """How narrow a column can be without breaking a word."""
    from rich.cells import cell_len

    parts = texts if no_wrap else [word for text in texts for word in text.split()]
    return max(map(cell_len, parts), default=0)


def make_table(left: list[str], right: list[str] | None = None) -> Table:
    """Make a table without lines.

    Args:
        left: headers of columns with text.
        right: headers of the columns after them, with numbers.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, header in enumerate(left):
        table.add_column(header, overflow="fold", no_wrap=index == 0)
    for header in right or []:
        table.add_column(header, justify="right", no_wrap=True)
    return table
