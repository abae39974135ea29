"""How long to wait before a request is made again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Pauses that double, up to a limit, each a random part of that (full jitter).

    Attributes:
        tries: how often a request without an answer is made in all.
        first: the longest first pause, in seconds.
        longest: no pause is longer, in seconds.
        sleep: waits for some seconds.
        jitter: gives a random number from 0 to 1.
    """

    tries: int = 5
    first: float = 0.1
    longest: float = 5.0
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random

    def pause(self, failures: int) -> None:
        """Wait after some failures in a row.

        Args:
            failures: how many, at least 1.
        """
        # Past 2**30 every pause is the longest; larger powers would overflow a float.
        self.sleep(min(self.longest, self.first * 2 ** min(failures - 1, 30)) * self.jitter())
