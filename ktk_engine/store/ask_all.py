"""Several requests to a store, made concurrently if it is remote."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ktk_engine.store.interface import ObjectStore

_T = TypeVar("_T")
_A = TypeVar("_A")
AT_ONCE = 16


def ask_all(store: ObjectStore, ask: Callable[[_T], _A], items: Iterable[_T]) -> list[_A]:
    """Call a function for each item, concurrently on a remote store; results are in order.

    A local disk answers faster than a thread starts, so there the calls follow each other.
    """
    wanted = list(items)
    if not store.is_remote or len(wanted) < 2:
        return [ask(item) for item in wanted]
    with ThreadPoolExecutor(min(AT_ONCE, len(wanted))) as pool:
        return list(pool.map(ask, wanted))
