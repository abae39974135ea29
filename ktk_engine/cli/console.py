"""The console of the commands: colours on terminals, plain text of 100 columns in pipes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import click

from ktk_engine.cli.voice import COMMAND
from ktk_engine.messages import Message, Remedy, Voice, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPE_COLUMNS = 100
_BETWEEN = "   "  # between two columns


@dataclass(frozen=True)
class Listener:
    """The reader of a command's output, if it is not a user at a terminal."""

    voice: Voice = field(default_factory=lambda: COMMAND)  # for remedies
    output: IO[str] | None = None  # replaces standard output


_PERSON = Listener()


def listener() -> Listener:
    """The reader of this command's output: the `listener` of its context."""
    context = click.get_current_context(silent=True)
    known = (context.find_root().obj if context else None) or {}
    found: Listener = known.get("listener", _PERSON)
    return found


def say(*parts: object, err: bool = False, style: str = "") -> None:
    """Print a line in the listener's words, on a terminal in a style of rich such as `red`."""
    to = listener()
    said = Message(*parts).said(to.voice)
    if style:
        make_console().print(said, style=style, soft_wrap=True)
    else:
        click.echo(printable(said), None if err else to.output, err=err)


def say_json(data: Any) -> None:
    """Print data as JSON, with messages in the listener's words."""
    say(json.dumps(_plain(data, listener().voice), indent=2))


def flag(name: str, value: str = "") -> str:
    """An option as the listener writes it: `--dry-run`, or `dry_run: true`."""
    given = Remedy("flag", option=f"--{name} {value}".rstrip(),
                   argument=f"{name.replace('-', '_')}: {value or 'true'}")  # fmt: skip
    return given.said(listener().voice)


def _plain(data: Any, voice: Voice) -> Any:
    if isinstance(data, Mapping):
        return {key: _plain(value, voice) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(item, voice) for item in data]
    return data.said(voice) if isinstance(data, Message) else data


def warn(warning: object) -> None:
    """Print a warning on standard error unless it is empty."""
    if warning:
        say("Warning: ", warning, err=True)


def make_console() -> Console:
    """A console for standard output that obeys nothing in names and values of stores."""
    from rich.console import Console

    class PlainConsole(Console):
        def render_str(self, text: str, **settings: Any) -> Any:
            return super().render_str(printable(text), **settings)

    file = listener().output
    console = PlainConsole(markup=False, highlight=False, emoji=False, file=file)
    if not console.is_terminal:
        console.width = PIPE_COLUMNS
    return console


def print_table(console: Console, table: Table, with_empty: bool = False) -> None:
    """Print a table, or a block of lines per row if its words would be broken.

    Args:
        console: the console.
        table: the table.
        with_empty: whether blocks have lines for empty cells.
    """
    columns = [
        (printable(str(column.header)), [printable(str(cell)) for cell in column.cells])
        for column in table.columns
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
    """Widths of columns; rich itself would shrink the widest until its words break."""
    widths = list(narrowest)
    wanting = sorted(range(len(widths)), key=lambda index: widest[index] - narrowest[index])
    for done, index in enumerate(wanting):
        more = min(widest[index] - narrowest[index], spare // (len(wanting) - done))
        widths[index] += more
        spare -= more
    return widths


def _width(texts: list[str], no_wrap: bool) -> int:
    """The least width of a column that breaks no word."""
    from rich.cells import cell_len

    parts = texts if no_wrap else [word for text in texts for word in text.split()]
    return max(map(cell_len, parts), default=0)


def make_table(left: list[str], right: list[str] | None = None) -> Table:
    """A table without lines; columns on the right are for numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, header in enumerate(left):
        table.add_column(header, overflow="fold", no_wrap=index == 0)
    for header in right or []:
        table.add_column(header, justify="right", no_wrap=True)
    return table
