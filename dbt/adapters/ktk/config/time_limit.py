"""The time limit of statements, from the profile or a model's configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import DbtConfigError

from ktk_engine.formatting import noun


@dataclass(frozen=True)
class TimeLimit:
    """The longest time that one statement or write may take."""

    seconds: float
    setting: str  # where it is set, for messages

    def __str__(self) -> str:
        return f"{self.seconds:g} {noun(self.seconds, 'second')}"


def time_limit(node: Any, profile: float | None) -> TimeLimit | None:
    """Give a node's own limit, or else that of the profile; None if there is none.

    `timeout` is what dbt-spark calls it in Python models. Raises a `DbtConfigError` if the node's
    is not a number of seconds.
    """
    config: Any = getattr(node, "config", None)
    given = config if hasattr(config, "get") else {}
    key = "timeout" if given.get("query_timeout") is None else "query_timeout"
    own = given.get(key)
    if own is None:
        return TimeLimit(profile, "`query_timeout` in the profile") if profile else None
    if problem := seconds_problem(own):
        kind = str(node.resource_type).capitalize()
        raise DbtConfigError(f"{kind} {node.name}: config `{key}` {problem}")
    return TimeLimit(own, f"the config `{key}`") if own else None


def seconds_problem(value: Any) -> str:
    """Say why a value is not a `query_timeout`; empty if it is one."""
    if value is None:
        return ""
    if not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value < 1e9:
        return ""
    return f"must be a number of seconds, for instance 600 (0 means no limit), but is {value!r}."
