"""A constraint on the rows of a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ktk_engine.types.quote import quote_identifier

# Where a snapshot's properties keep what its rows have to keep, for anyone who inserts by hand.
CONSTRAINTS = "constraints"


@dataclass(frozen=True)
class Constraint:
    """What all rows of a dataset keep, as SQL has it: null breaks only `not_null` and keys.

    Attributes:
        kind: `unique` and `primary_key` look at all rows of the dataset, the others at each new
            row by itself.
        columns: its columns; empty for `check`.
        expression: the condition of a `check`, in Spark's SQL.
        name: for messages; empty if it has none.
    """

    kind: Literal["not_null", "unique", "primary_key", "check"]
    columns: tuple[str, ...] = ()
    expression: str = ""
    name: str = ""

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> Constraint:
        """Read what `as_dict` gives."""
        return cls(item["kind"], tuple(item["columns"]), item["expression"], item["name"])

    def as_dict(self) -> dict[str, Any]:
        """Give the constraint as data for JSON."""
        return {**asdict(self), "columns": list(self.columns)}

    @property
    def rules(self) -> list[str]:
        """What must not be false for any row, as SQL expressions."""
        if self.kind == "check":
            return [self.expression]
        if self.kind == "unique":
            return []
        return [f"{quote_identifier(name)} is not null" for name in self.columns]

    @property
    def key(self) -> tuple[str, ...]:
        """Columns whose values no two rows share; empty if there are none."""
        return self.columns if self.kind in ("unique", "primary_key") else ()

    def __str__(self) -> str:
        what = self.expression or ", ".join(self.columns)
        return f"constraint {self.name} {self.kind} ({what})".replace("  ", " ")
