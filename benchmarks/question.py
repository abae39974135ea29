"""What is asked: a statement about a cube, which each peer puts in its own way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.workload import (
    CUBE,
    ENRICHMENTS,
    PARTITION,
    ROWS_PER_VALUE,
    SEED,
    VALUES,
    Workload,
)

ALL = (PARTITION, "L", "v", "k", *ENRICHMENTS)
LOOKUP = "lookup"
LOOKUP_ROWS = 1_000_000


@dataclass(frozen=True)
class Question:
    """A question about a workload; its answer is one row of numbers.

    Attributes:
        name: what it is called.
        columns: the columns of the cube that it needs.
        column: the column of its condition; empty if it has none.
        value: the value that the condition asks for.
        statement: SQL over `{cube}` and `{lookup}`, a table of a million rows; empty: the columns
            are summed, which every peer can do.
    """

    name: str
    columns: tuple[str, ...]
    column: str = ""
    value: int = 0
    statement: str = ""

    @property
    def where(self) -> str | None:
        """The condition in SQL."""
        return f"{self.column} = {self.value}" if self.column else None

    def datasets(self, workload: Workload) -> list[str]:
        """The enrichments that are needed."""
        others = [name for name in workload.datasets if name != SEED]
        return [n for n in others if set(self.columns) & set(workload.datasets[n].columns)]

    def sql(self, cube: str = CUBE, lookup: str = LOOKUP) -> str:
        """The question as a statement.

        Args:
            cube: what the cube is called there.
            lookup: what the table is called there.
        """
        if self.statement:
            return self.statement.format(cube=cube, lookup=lookup)
        sums = ", ".join(f"sum({column})" for column in self.columns)
        return f"select {sums} from {cube}" + (f" where {self.where}" if self.column else "")


# Gives the numbers of a question's answer, in order.
Peer = Callable[[Question], list[float]]


def questions(rows: int) -> list[Question]:
    """The questions about workload W of so many cells, which every peer is asked."""
    return [
        Question("full join", ALL),
        Question("two payload columns", ("v", "a")),
        Question("one partition", ALL, PARTITION, 3),
        Question("one value of an index that follows `L`", ALL, "k", rows // ROWS_PER_VALUE // 2),
        Question("one value of an index that does not", ALL, "r", VALUES // 2),
    ]


def statements() -> list[Question]:
    """The questions about workload W that only SQL can ask."""
    return [
        Question(
            "self-join",
            ("v", "a"),
            statement="select sum(x.v * y.a), count(*) from {cube} x join {cube} y using (P, L)",
        ),
        Question(
            "group by a partition column",
            ("v", "a"),
            statement="select sum(n * P), sum(s), max(m) from "
            "(select P, count(*) n, sum(v) s, max(a) m from {cube} group by P)",
        ),
        Question(
            "joined with a table",
            ("v", "a"),
            statement="select sum(v + a * w), count(*) from {cube} join {lookup} using (L)",
        ),
    ]
