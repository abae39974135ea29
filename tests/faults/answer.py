"""An answer: a value, or an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ktk_engine.errors import KtkError
from ktk_engine.format.dataset_key import DOCUMENT_SUFFIX  # deep: tells documents


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


def names_file(text: str, file: str) -> bool:
    """Whether a message names a file; also one that speaks of the document of a dataset."""
    uuid = file.removesuffix(DOCUMENT_SUFFIX)
    return file in text or (uuid != file and uuid in text and "document" in text)


def answered(ask: Callable[[], Any]) -> Answer:
    """Ask; an error is an answer, too."""
    try:
        return Answer(ask())
    except KtkError as error:
        return Answer(error=str(error) or type(error).__name__)
    except Exception as error:  # noqa: BLE001 - whether it is one of ours is the question
        return Answer(error=f"{type(error).__name__}: {error}", ours=False)
