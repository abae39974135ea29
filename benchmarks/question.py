"""What the benchmark asks: columns of a cube that are summed, and which rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.workload import ENRICHMENTS, ROWS_PER_VALUE

ALL = ("P", "L", "v", "k", *ENRICHMENTS)


@dataclass(frozen=True)
class Question:
    """A question about workload W.

    Attributes:
        name: what it is called.
        columns: what is summed.
        column: the column of its condition; empty if it has none.
        value: the value that the condition asks for.
    """

    name: str
    columns: tuple[str, ...]
    column: str = ""
    value: int = 0

    @property
    def where(self) -> str | None:
        """The condition in SQL."""
        return f"{self.column} = {self.value}" if self.column else None

    @property
    def datasets(self) -> tuple[str, ...]:
        """The enrichments that are needed."""
        return tuple(name for name in ENRICHMENTS if name in self.columns)


# Gives the sums of a question's columns, in order.
Peer = Callable[[Question], list[float]]


def questions(rows: int) -> list[Question]:
    """The questions about a workload of so many cells."""
    return [
        Question("full join", ALL),
        Question("two payload columns", ("v", "a")),
        Question("one partition", ALL, "P", 3),
        Question("one index value", ALL, "k", rows // ROWS_PER_VALUE // 2),
    ]
