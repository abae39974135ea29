"""Whether a node runs if nothing has changed that it is computed from: `skip_unchanged`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

KEY = "skip_unchanged"
DETERMINISTIC = "deterministic"  # what a Python model says about itself
_AGE = re.compile(r"\s*(\d{1,6})\s*(minute|hour|day|week)s?\s*")


@dataclass(frozen=True)
class SkipUnchanged:
    """What to do with a node whose rows would be those that are there."""

    is_on: bool = False  # whether anything is judged
    checks: bool = False  # whether it runs all the same, and its rows are compared
    at_most: timedelta | None = None  # the age of rows from which it runs all the same


DEFAULT = SkipUnchanged()


def skip_unchanged_of(config: Mapping[str, Any]) -> SkipUnchanged:
    """Read the configuration of a node; raises a ValueError that says what it must be."""
    value = config.get(KEY)
    if isinstance(value, str) and value.casefold() in ("true", "false"):  # a variable, from Jinja
        value = value.casefold() == "true"
    if value is None:
        return DEFAULT
    if isinstance(value, bool):
        return SkipUnchanged(value)
    if value == "check":
        return SkipUnchanged(True, checks=True)
    if isinstance(value, Mapping) and [*value] == ["at_most"]:
        found = _AGE.fullmatch(str(value["at_most"]))
        if found is not None and int(found[1]):
            return SkipUnchanged(True, at_most=timedelta(**{f"{found[2]}s": int(found[1])}))
    raise ValueError(f"must be true, false, check or {{at_most: 7 days}}, but is {value!r}.")
