"""Reads the version of a relation that a statement names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ktk_engine.catalog.source_address import NUMBER, StoreAddress, parse_address
from ktk_engine.errors import QueryError
from ktk_engine.log.state import State
from ktk_engine.log.version import state_at
from ktk_engine.types.calendar import time_zone
from ktk_engine.types.quote import quote_text

_LITERAL = re.compile(r"(?:TIMESTAMP(?:_LTZ|_NTZ)? |DATE )?'(?P<text>[^']*)'")


@dataclass(frozen=True)
class Moment:
    """A version of a relation."""

    version: int | str | None = None  # number of a commit, or a tag; None to go by `timestamp`
    timestamp: datetime | None = None  # selects the last commit until then; aware

    def __str__(self) -> str:
        if self.timestamp is not None:
            return f"timestamp as of {self.timestamp.isoformat()}"
        if isinstance(self.version, str):
            return f"version as of {quote_text(self.version)}"
        return f"version as of {self.version}"

    @classmethod
    def parse(cls, text: str) -> Moment:
        """Read what `str` gives; raises a ValueError for anything else."""
        kind, _, value = text.partition(" as of ")
        if kind == "timestamp":
            return cls(timestamp=datetime.fromisoformat(value))
        return cls(version=value.strip("'") if value.startswith("'") else int(value))

    def of(self, state: State) -> State:
        """Give a scope at this version; see `state_at`."""
        return state_at(state, self.version, self.timestamp)


def moment_of(
    parts: Sequence[str], version: str | None, timestamp: str, zone: str
) -> Moment | None:
    """Give the version that an address or an `as of` clause names; None for the newest.

    `zone` is the session's time zone, for timestamps without one; empty if unknown. Raises a
    `QueryError` if the clause is not a literal of a date or time.
    """
    if version is not None:
        # Spark's clause takes a number or a string; a tag never looks like a number.
        return Moment(version=int(version) if NUMBER.fullmatch(version) else version)
    if not timestamp:
        return _pinned(parts)
    name, literal = ".".join(parts[-2:]), _LITERAL.fullmatch(timestamp)
    try:
        if literal is None:
            raise ValueError("no literal")
        found = datetime.fromisoformat(literal["text"])
    except ValueError as error:
        raise QueryError(
            f"{name} timestamp as of {timestamp}: give a date or time as text, for "
            "instance '2026-11-01' or '2026-11-01 09:30:00+01:00'."
        ) from error
    if found.tzinfo is None and time_zone(zone) is None:
        raise QueryError(
            f"{name} timestamp as of {timestamp}: add a time zone, for instance +01:00. "
            f"That of the session, {zone or 'which is unknown here'}, is known to Spark alone."
        )
    return Moment(timestamp=found if found.tzinfo else found.replace(tzinfo=time_zone(zone)))


def _pinned(parts: Sequence[str]) -> Moment | None:
    """The version in the relation's address; a clause of the statement takes precedence."""
    address = parse_address(parts[0]) if len(parts) == 3 else None
    if isinstance(address, StoreAddress) and address.version is not None:
        return Moment(version=address.version)
    return None
