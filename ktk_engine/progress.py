"""How long work tells how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Is told how much is done, and of how much, as often as that changes; by any thread."""


def untold(done: int, total: int) -> None:
    """Nobody asks."""
