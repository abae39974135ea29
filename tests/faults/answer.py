"""An answer: a value, or an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ktk_engine.errors import KtkError


@dataclass(frozen=True)
class Answer:
    """What was answered.

    Attributes:
        value: the answer; None if there was an error.
        error: text of the error, empty if there was none.
        ours: whether the error is one of ours.
    """

    value: Any = None
    error: str = ""
    ours: bool = True


def answered(ask: Callable[[], Any]) -> Answer:
    """Ask; an error is an answer, too."""
    try:
        return Answer(ask())
    except KtkError as error:
        return Answer(error=str(error) or type(error).__name__)
    except Exception as error:  # noqa: BLE001 - whether it is one of ours is the question
        return Answer(error=f"{type(error).__name__}: {error}", ours=False)
