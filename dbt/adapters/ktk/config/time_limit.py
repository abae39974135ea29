"""How long a statement may take, as the profile or a model's configuration says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import DbtConfigError

from ktk_engine.formatting import noun


@dataclass(frozen=True)
class TimeLimit:
    """The longest time that one statement or write may take.

    Attributes:
        seconds: its length.
        setting: where it is set, for messages.
    """

    seconds: float
    setting: str

    def __str__(self) -> str:
        return f"{self.seconds:g} {noun(self.seconds, 'second')}"


def time_limit(node: Any, profile: float | None) -> TimeLimit | None:
    """Give the limit that holds for a node.

    Args:
        node: a node of dbt; None for work that belongs to none.
        profile: the profile's `query_timeout`.

    Returns:
        The node's own limit, else the profile's; None if there is none.

    Raises:
        DbtConfigError: the node's `query_timeout` is not a number of seconds.
    """
    config: Any = getattr(node, "config", None)
    own = config.get("query_timeout") if hasattr(config, "get") else None
    if own is None:
        return TimeLimit(profile, "`query_timeout` in the profile") if profile else None
    if problem := seconds_problem(own):
        kind = str(node.resource_type).capitalize()
        raise DbtConfigError(f"{kind} {node.name}: config `query_timeout` {problem}")
    return TimeLimit(own, "the config `query_timeout`") if own else None


def seconds_problem(value: Any) -> str:
    """Say why a value is no `query_timeout`; empty if it is one."""
    if value is None:
        return ""
    if not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value < 1e9:
        return ""
    return f"must be a number of seconds, for instance 600 (0 means no limit), but is {value!r}."
