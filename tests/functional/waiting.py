"""Waits for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something is so; fail if it never is.

    Args:
        condition: asked again and again.
        seconds: how long to wait at most.
    """
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)
