"""A constraint on the rows of a dataset."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ktk_engine.errors import ConfigurationError, FormatError
from ktk_engine.format.field_types import with_field_types
from ktk_engine.types.quote import quote_identifier

# The key of constraints in a snapshot's properties, which also bind inserts by hand.
CONSTRAINTS = "constraints"
# Types that limit the length of a text. Columns here have no such type: the limit is a check.
_LIMITED = re.compile(
    r"\s*(?:var)?char(?:acter)?(?:\s+varying)?\s*\(\s*(\d+)\s*\)\s*", re.IGNORECASE
)
_LIMITED_PART = re.compile(r"\b(?:var)?char(?:acter)?(?:\s+varying)?\s*\(", re.IGNORECASE)


@dataclass(frozen=True)
class Constraint:
    """What all rows of a dataset satisfy, as in SQL: null violates only `not_null` and keys."""

    # `unique` and `primary_key` compare all rows; the others check each new row
    kind: Literal["not_null", "unique", "primary_key", "check"]
    columns: tuple[str, ...] = ()  # empty for `check`
    expression: str = ""  # the condition of a `check`, in Spark SQL
    name: str = ""  # for messages; may be empty

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> Constraint:
        """Read what `as_dict` gives; raises a `FormatError` for anything else."""
        try:
            kind, columns = item["kind"], tuple(item["columns"])
            return with_field_types(cls(kind, columns, item["expression"], item["name"]))
        except (KeyError, TypeError) as error:
            raise FormatError(f"A stored constraint is damaged: {error}.") from error

    def as_dict(self) -> dict[str, Any]:
        """Give the constraint as JSON data."""
        return {**asdict(self), "columns": list(self.columns)}

    @property
    def rules(self) -> list[str]:
        """SQL expressions that must not be false for any row."""
        if self.kind == "check":
            return [self.expression]
        if self.kind == "unique":
            return []
        return [f"{quote_identifier(name)} is not null" for name in self.columns]

    @property
    def key(self) -> tuple[str, ...]:
        """Columns whose values identify a row; may be empty."""
        return self.columns if self.kind in ("unique", "primary_key") else ()

    def __str__(self) -> str:
        what = self.expression or ", ".join(self.columns)
        return f"constraint {self.name} {self.kind} ({what})".replace("  ", " ")


def length_limit(type_: str) -> int | None:
    """The length that a type such as `varchar(3)` allows a text; None for any.

    Raises a `ConfigurationError` for a limit within a nested type, which is checked nowhere.
    """
    if found := _LIMITED.fullmatch(type_):
        return int(found[1])
    if _LIMITED_PART.search(type_):
        raise ConfigurationError(
            f"`{type_}` limits the length of a text within it, which is not checked. Write string."
        )
    return None


def length_constraint(column: str, type_: str) -> Constraint | None:
    """The check of a type such as `varchar(3)`; None for other types. See `length_limit`."""
    limit = length_limit(type_)
    if limit is None:
        return None
    return Constraint("check", (), f"length({quote_identifier(column)}) <= {limit}", type_.strip())
