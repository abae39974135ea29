"""How long a statement may take, as the profile or a model's configuration says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import DbtConfigError


@dataclass(frozen=True)
class TimeLimit:
    """The longest time that Spark may work on one statement or write.

    Attributes:
        seconds: its length.
        setting: where it is set, for messages.
    """

    seconds: float
    setting: str

    def __str__(self) -> str:
        return f"{self.seconds:g} {'second' if self.seconds == 1 else 'seconds'}"


def time_limit(node: Any, profile: float | None) -> TimeLimit | None:
    """Give the limit that holds for a node.

    Args:
        node: a node of dbt; None for work that belongs to none.
        profile: the profile's `query_timeout`.

    Returns:
        The node's own limit, else the profile's; None if there is none.

    Raises:
        DbtConfigError: the node's `query_timeout` is no number of seconds.
    """
    config: Any = getattr(node, "config", None)
    own = config.get("query_timeout") if hasattr(config, "get") else None
    if own is not None:
        who = f"{str(node.resource_type).capitalize()} {node.name}: config `query_timeout`"
        seconds = read_seconds(who, own)
        return TimeLimit(seconds, "the config `query_timeout`") if seconds else None
    return TimeLimit(profile, "`query_timeout` in the profile") if profile else None


def read_seconds(who: str, value: Any) -> float:
    """Read a number of seconds; 0 means no limit.

    Raises:
        DbtConfigError: it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise DbtConfigError(
            f"{who} must be a number of seconds, for instance 600 (0 means no limit), but is "
            f"{value!r}."
        )
    return float(value)
