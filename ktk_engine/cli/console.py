"""The console of the commands: colours for people, plain text of 100 columns for pipes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPE_COLUMNS = 100


def make_console() -> Console:
    """Make the console for standard output; names from stores are never read as markup."""
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, emoji=False, width=PIPE_COLUMNS)
    return console


def make_table(left: list[str], right: list[str] | None = None) -> Table:
    """Make a table without lines.

    Args:
        left: headers of columns with text.
        right: headers of the columns behind them, with numbers.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, header in enumerate(left):
        table.add_column(header, overflow="fold", no_wrap=index == 0)
    for header in right or []:
        table.add_column(header, justify="right", no_wrap=True)
    return table
