"""What `delete from`, `update` and `merge into` do to the rows of a dataset.

All three match stored rows with those of a source, which a delete or an update lacks. The first
clause whose condition is true decides what happens to each row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["matched", "not matched", "not matched by source"]
Action = Literal["update", "delete", "insert"]
Verb = Literal["delete", "update", "merge"]


@dataclass(frozen=True)
class Clause:
    """What happens to some rows."""

    kind: Kind
    action: Action  # `insert` for source rows, `update` and `delete` for stored ones
    condition: str = ""  # an SQL expression; empty for every row
    # column -> SQL expression; None takes the source's columns of the same names (`set *`)
    values: Mapping[str, str] | None = field(default_factory=dict)


@dataclass(frozen=True)
class RowChange:
    """A change of rows."""

    verb: Verb
    target: str  # name of the stored rows in expressions
    clauses: tuple[Clause, ...]
    source: str = ""  # name of the source's rows in expressions; empty without a source
    using: str = ""  # the source as written after `using`, with its alias
    on: str = ""  # SQL expression that matches source rows with stored rows
    ctes: str = ""  # the `with` before the statement, whose names `using` may use

    def of(self, kind: Kind) -> tuple[Clause, ...]:
        """The clauses on one kind of rows."""
        return tuple(clause for clause in self.clauses if clause.kind == kind)

    @property
    def deletes_all_matched(self) -> bool:
        """Whether every matching row is deleted, so that several source rows may match one row."""
        matched = self.of("matched")
        return bool(matched) and matched[0].action == "delete" and not matched[0].condition

    def __str__(self) -> str:
        """Give the verb and the affected rows, for the log."""
        if self.verb == "merge":
            return f"merge on {self.on}"
        where = self.clauses[0].condition
        return f"{self.verb} where {where}" if where else f"{self.verb} all rows"
