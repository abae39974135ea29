"""Sends the engine's warnings to dbt's log, and keeps control characters out of it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.event_manager_client import get_event_manager

from dbt.adapters.ktk.voice import DBT
from ktk_engine.errors import ForeignWriterWarning, PublishWarning, SourceWarning
from ktk_engine.messages import printable, spoken

_LOGGER = AdapterLogger("ktk")
_COLOUR = re.compile(r"(\x1b\[(?:0|22|3\d)m)")  # of dbt's own lines


def log_warnings() -> None:
    """Show the engine's warnings as lines of dbt's log.

    `warnings.showwarning` belongs to the whole process: it is replaced once, and other warnings
    still go to the previous function.
    """
    before: Any = warnings.showwarning
    if getattr(before, "logs_warnings_of_ktk", False):
        return

    def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
        if issubclass(category, ForeignWriterWarning | PublishWarning | SourceWarning):
            said = message.args[0] if isinstance(message, Warning) else message
            _LOGGER.warning(spoken(said, DBT))
        else:
            before(message, category, *rest, **named)

    show.logs_warnings_of_ktk = True  # type: ignore[attr-defined]
    warnings.showwarning = show


def escape_log() -> None:
    """Let dbt's logs show control characters of names, values and errors instead of obeying them.

    dbt gives each of its logs a function for secrets, which sees every line.
    """
    for log in getattr(get_event_manager(), "loggers", ()):
        if not isinstance(log.scrubber, _Escaping):
            log.scrubber = _Escaping(log.scrubber)


@dataclass(frozen=True)
class _Escaping:
    before: Callable[[str], str]

    def __call__(self, line: str) -> str:
        parts = _COLOUR.split(self.before(line))
        return "".join(p if _COLOUR.fullmatch(p) else printable(p) for p in parts)
