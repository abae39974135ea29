"""The answer to a statement that no Spark was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What a statement gave.

    Attributes:
        columns: (name, Spark's name of the type) of each.
        rows: their values.
    """

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]
