"""What the tasks of a run share: the store, a memory limit, and a flag to cancel them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import pyarrow as pa

from ktk_engine.errors import LocalEngineError
from ktk_engine.files.footers import FooterCache, OpenedFooter
from ktk_engine.formatting import size
from ktk_engine.local.task import TaskFile
from ktk_engine.messages import Message, Remedy
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.read_cache import ReadCache

_Shared = TypeVar("_Shared")
_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")
_MOST_FOOTERS = 2_000

_SHARE = 4
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def _footers() -> ReadCache[str, OpenedFooter]:
    return ReadCache(_MOST_FOOTERS, lambda footer: 1)


def _shared() -> ReadCache[str, Any]:
    return ReadCache(1, lambda rows: 0)


@dataclass(frozen=True)
class JoinRun:
    """One execution of tasks, in any number of threads."""

    store: ObjectStore
    limit: int  # bytes of memory per task
    # whether a task may use several threads to decode columns and read datasets
    use_threads: bool = False
    footers: FooterCache = field(default_factory=FooterCache)  # kept for later runs
    cancelled: threading.Event = field(default_factory=threading.Event)  # set to end the tasks
    _footers: ReadCache[str, OpenedFooter] = field(default_factory=_footers)
    _shared: ReadCache[str, Any] = field(default_factory=_shared)

    def check(self) -> None:
        """Raise a `CancelledError` if the run was cancelled."""
        if self.cancelled.is_set():
            raise CancelledError

    def footer(self, file: TaskFile) -> OpenedFooter:
        """Give a file's verified footer and physical types; read once per run."""
        return self._footers.get(
            file.key, lambda: self.footers.opened(self.store, file.key, file.digest)
        )

    def side_by_side(
        self, ask: Callable[[_Item], _Answer], items: Sequence[_Item]
    ) -> list[_Answer]:
        """Call a function for each item, in threads of their own where tasks leave some idle.

        The function must not call this method.
        """
        if not self.use_threads or len(items) < 2:
            return [ask(item) for item in items]
        with ThreadPoolExecutor(len(items), thread_name_prefix="ktk-read") as pool:
            return list(pool.map(ask, items))

    def shared(self, name: str, make: Callable[[], _Shared]) -> _Shared:
        """Give what all tasks need, such as the rows of a small dataset; made once per run."""
        return cast(_Shared, self._shared.get(name, make))


@dataclass
class MemoryBudget:
    """Counts the bytes held in memory; safe between threads."""

    limit: int
    used: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, count: int) -> None:
        """Count bytes that were read; raises a `LocalEngineError` above the limit."""
        with self._lock:
            self.used += count
            used = self.used
        if used > self.limit:
            raise LocalEngineError(too_large(used, self.limit, "so far"))


def too_large(needed: int, limit: int, what: str) -> Message:
    """Say that an answer exceeds the memory limit, and what to do."""
    return Message(
        f"The query takes {size(needed)} of memory ({what}), more than the limit of "
        f"{size(limit)} for this process. Select fewer columns or rows, set a larger ",
        Remedy("memory_limit"),
        ", or use Spark: ",
        Remedy("ask_spark"),
        ".",
    )


@contextmanager
def arrow_limits() -> Iterator[None]:
    """Turn what Arrow cannot compute into a `LocalEngineError`.

    That is a type without a kernel, or more than 2 GB of text in one array.
    """
    try:
        yield
    except (pa.ArrowNotImplementedError, pa.ArrowCapacityError, pa.ArrowInvalid) as error:
        raise LocalEngineError(
            f"Arrow cannot answer the query in this process: {error}. Use Spark: ",
            Remedy("ask_spark"),
            ".",
        ) from error


def default_memory_limit() -> int:
    """A quarter of the memory of this machine or container."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(memory, _container_limit() or memory) // _SHARE


def _container_limit() -> int | None:
    try:
        text = _CGROUP.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
