"""A bounded cache of what was read from a store, shared by threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ReadCache(Generic[K, V]):
    """An LRU cache of values that never change under their key.

    Of several threads that get a missing value, one reads it and the others wait.
    """

    def __init__(self, largest: int, size: Callable[[V], int]) -> None:
        """`largest` limits the sum of all sizes, except that the newest value is always kept."""
        self._largest = largest
        self._size = size
        self._lock = threading.Lock()
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._total = 0
        self._reading: dict[K, Future[V]] = {}

    def cached(self, key: K) -> V | None:
        """Give a cached value, or None; reads nothing."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def get(self, key: K, read: Callable[[], V]) -> V:
        """Give a value, and read it if needed; after an error the next caller reads again."""
        while True:
            with self._lock:
                if key in self._values:
                    self._values.move_to_end(key)
                    return self._values[key][0]
                other = self._reading.get(key)
                if other is None:
                    mine = self._reading[key] = Future[V]()
            if other is None:
                return self._read(key, read, mine)
            if other.exception() is None:
                return other.result()

    def _read(self, key: K, read: Callable[[], V], mine: Future[V]) -> V:
        try:
            value = read()
            size = self._size(value)
        except BaseException as error:
            with self._lock:
                del self._reading[key]
            mine.set_exception(error)
            raise
        with self._lock:
            del self._reading[key]
            self._values[key] = (value, size)
            self._total += size
            while self._total > self._largest and len(self._values) > 1:
                _, (_, gone) = self._values.popitem(last=False)
                self._total -= gone
        mine.set_result(value)
        return value
