"""How long-running work reports progress: to a callback, a bar, or as its current step."""

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
    """Work that another thread watches."""

    step: Step = "computing"  # the current one


_WATCHED: contextvars.ContextVar[Watched | None] = contextvars.ContextVar("watched", default=None)


@contextmanager
def watching(work: Watched) -> Iterator[None]:
    """Report the steps of a block in `work`."""
    token = _WATCHED.set(work)
    try:
        yield
    finally:
        _WATCHED.reset(token)


@contextmanager
def doing(step: Step) -> Iterator[None]:
    """Set the step that watchers see while a block runs."""
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
    """Call `say` regularly, in another thread, with the seconds that a block has been running."""
    ended, began = threading.Event(), monotonic()

    def beat() -> None:
        while not ended.wait(every):
            say(round(monotonic() - began))

    context = contextvars.copy_context()  # dbt's log finds the node in it
    thread = threading.Thread(target=context.run, args=[beat], name="ktk-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def no_progress(done: int, total: int) -> None:
    """Reports no progress."""


@contextmanager
def telling(progress: Progress | bool, what: str) -> Iterator[Progress]:
    """Give a progress callback for a block: the given one, a bar for True, none for False."""
    if callable(progress):
        yield progress
    elif progress:
        with progress_bar(what) as tell:
            yield tell
    else:
        yield no_progress


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """Show a bar during a block, on a terminal's standard error or in a notebook.

    Elsewhere it shows nothing. Raises a `ConfigurationError` if its package is not installed.
    """
    need("cli", "A progress bar", "rich")
    from rich.console import Console

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield no_progress
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
    """Show on a terminal or in a notebook that a block starts Spark."""
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
