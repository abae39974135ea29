"""How long work tells how far it is: a function of the caller's, or a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Is told how much is done, and of how much, as often as that changes; by any thread."""


def untold(done: int, total: int) -> None:
    """Nobody asks."""


@contextmanager
def telling(progress: Progress | bool, what: str) -> Iterator[Progress]:
    """Give what is told how far work is, within a block.

    Args:
        progress: a function; True for a bar, False for nothing.
        what: what is done, for instance `reading`.
    """
    if callable(progress):
        yield progress
    elif progress:
        with progress_bar(what) as tell:
            yield tell
    else:
        yield untold


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """Show a bar within a block, on a terminal's standard error or in a notebook.

    It goes with the block; elsewhere nothing is shown.

    Args:
        what: what is done, for instance `reading`.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield untold
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        *(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
