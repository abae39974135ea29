"""How long to wait before a request is retried."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Pauses that double up to a limit, each a random part of that (full jitter)."""

    tries: int = 5  # requests in all, including the first
    first: float = 0.1  # upper limit of the first pause, in seconds
    longest: float = 5.0  # upper limit of all pauses, in seconds
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random  # gives a random number from 0 to 1

    def pause(self, failures: int) -> None:
        """Wait after a number of consecutive failures, at least 1."""
        # Beyond 2**30 all pauses are the longest; larger powers would overflow a float.
        self.sleep(min(self.longest, self.first * 2 ** min(failures - 1, 30)) * self.jitter())
