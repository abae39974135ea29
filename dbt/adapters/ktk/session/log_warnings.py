"""Sends the engine's warnings to dbt's log; other Python warnings stay as they are."""

from __future__ import annotations

import warnings
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.ktk.voice import DBT
from ktk_engine.errors import ForeignWriterWarning, PublishWarning, SourceWarning
from ktk_engine.messages import spoken

_LOGGER = AdapterLogger("ktk")


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
