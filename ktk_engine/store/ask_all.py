"""Several questions to a store, which a remote one answers at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ktk_engine.store.interface import ObjectStore

_T = TypeVar("_T")
_A = TypeVar("_A")
_THREADS = 16


def ask_all(store: ObjectStore, ask: Callable[[_T], _A], items: Iterable[_T]) -> list[_A]:
    """Ask for each of some items; nobody waits for one answer before the next question.

    A local disk answers sooner than a thread starts, so there it is one after the other.

    Args:
        store: where the answers come from.
        ask: asks for one item.
        items: the items.

    Returns:
        The answers, in the order of the items.
    """
    wanted = list(items)
    if not store.is_remote or len(wanted) < 2:
        return [ask(item) for item in wanted]
    with ThreadPoolExecutor(min(_THREADS, len(wanted))) as pool:
        return list(pool.map(ask, wanted))
