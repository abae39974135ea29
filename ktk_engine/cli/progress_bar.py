"""A bar that shows how far long work is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ktk_engine.progress import Progress, untold


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """Show a bar on standard error within a block, if that is a terminal; it goes with the block.

    Args:
        what: what is done, for instance `reading`.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield untold
        return
    from rich.progress import Progress as Bar

    with Bar(console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
