"""How long work tells how far it is: a function of the caller's, a bar, or the step it is at."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from time import monotonic
from typing import Literal, TypeAlias

from ktk_engine.extras import need

Progress: TypeAlias = Callable[[int, int], None]
"""Gets how much is done, and of how much, whenever that changes; any thread may call it."""


Step: TypeAlias = Literal["computing", "reading", "sorting and writing", "writing", "committing"]


@dataclass
class Watched:
    """A piece of work that another thread watches.

    Attributes:
        step: what it does now.
    """

    step: Step = "computing"


_WATCHED: contextvars.ContextVar[Watched | None] = contextvars.ContextVar("watched", default=None)


@contextmanager
def watching(work: Watched) -> Iterator[None]:
    """Let the steps of a block be seen in `work`."""
    token = _WATCHED.set(work)
    try:
        yield
    finally:
        _WATCHED.reset(token)


@contextmanager
def doing(step: Step) -> Iterator[None]:
    """Set the step that watchers of this work see while a block runs."""
    work = _WATCHED.get()
    if work is None:
        yield
        return
    before, work.step = work.step, step
    try:
        yield
    finally:
        work.step = before


@contextmanager
def heartbeat(say: Callable[[int], None], every: float) -> Iterator[None]:
    """Tell now and then how long a block has been running.

    Args:
        say: gets the seconds, in a thread of its own.
        every: seconds in between.
    """
    ended, began = threading.Event(), monotonic()

    def beat() -> None:
        while not ended.wait(every):
            say(round(monotonic() - began))

    context = contextvars.copy_context()  # dbt's log asks it who is logging
    thread = threading.Thread(target=context.run, args=[beat], name="ktk-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def untold(done: int, total: int) -> None:
    """Nobody asks."""


@contextmanager
def telling(progress: Progress | bool, what: str) -> Iterator[Progress]:
    """Give the function that reports progress within a block.

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

    Raises:
        ConfigurationError: what draws it is not installed.
    """
    need("cli", "A progress bar", "rich")
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


@contextmanager
def starting_spark() -> Iterator[None]:
    """Show on a terminal or in a notebook, within a block that starts Spark, that it does."""
    if find_spec("rich") is None:
        yield
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield
        return
    text = "Spark is starting: seconds, a minute on a busy machine"
    with (
        console.status(text) as status,
        heartbeat(lambda seconds: status.update(f"{text}; {seconds} s so far"), 1.0),
    ):
        yield
