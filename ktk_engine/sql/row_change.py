"""What `delete from`, `update` and `merge into` want to do to the rows of a dataset.

All three are one thing: stored rows meet those of a source (of which a delete or an update has
none), and the first clause whose condition is true says what becomes of each row.
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
    """What becomes of some rows.

    Attributes:
        kind: stored rows that a source row matches, source rows that match no stored row, or
            stored rows that no source row matches.
        action: `insert` for source rows, `update` and `delete` for stored ones.
        condition: an SQL expression; where it is not true, the next clause is asked. Empty for
            every row.
        values: column -> SQL expression of its new value; None takes all of them from the
            source's columns of their names (`set *`, `insert *`).
    """

    kind: Kind
    action: Action
    condition: str = ""
    values: Mapping[str, str] | None = field(default_factory=dict)


@dataclass(frozen=True)
class RowChange:
    """A change of rows.

    Attributes:
        verb: the statement's.
        target: the name by which expressions know the stored rows.
        clauses: in order.
        source: the name by which they know the source's rows; empty if there is no source.
        using: what the source is, as written after `using`, with its alias.
        on: an SQL expression: which source rows match a stored row.
        ctes: what is before the statement: `with ...`, which the source may name.
    """

    verb: Verb
    target: str
    clauses: tuple[Clause, ...]
    source: str = ""
    using: str = ""
    on: str = ""
    ctes: str = ""

    def of(self, kind: Kind) -> tuple[Clause, ...]:
        """The clauses on one kind of rows."""
        return tuple(clause for clause in self.clauses if clause.kind == kind)

    @property
    def deletes_all_matched(self) -> bool:
        """Whether matching is enough to go, so that several source rows may match one row."""
        matched = self.of("matched")
        return bool(matched) and matched[0].action == "delete" and not matched[0].condition

    def __str__(self) -> str:
        """Give what the log says of it: the verb, and which rows."""
        if self.verb == "merge":
            return f"merge on {self.on}"
        where = self.clauses[0].condition
        return f"{self.verb} where {where}" if where else f"{self.verb} all rows"
