"""An answer: a value, or an error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ktk_engine.errors import ForeignWriterWarning, KtkError
from ktk_engine.format.dataset_key import DOCUMENT_SUFFIX  # deep: tells documents


@dataclass(frozen=True)
class Answer:
    """What was answered.

    Attributes:
        value: the answer; None if there was an error.
        error: text of the error, empty if there was none.
        ours: whether the error is one of ours.
        warned: text of the warnings that came with it: what the log has is read next to a document
            that is damaged.
    """

    value: Any = None
    error: str = ""
    ours: bool = True
    warned: str = field(default="", compare=False)


def names_file(text: str, file: str) -> bool:
    """Whether a message names a file; also one that speaks of the document of a dataset."""
    uuid = file.removesuffix(DOCUMENT_SUFFIX)
    return file in text or (uuid != file and uuid in text and "document" in text)


def answered(ask: Callable[[], Any]) -> Answer:
    """Ask; an error is an answer, too."""
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("error")
            warnings.simplefilter("always", ForeignWriterWarning)
            value = ask()
        return Answer(value, warned=" ".join(str(item.message) for item in said))
    except KtkError as error:
        return Answer(error=str(error) or type(error).__name__)
    except Exception as error:  # noqa: BLE001 - whether it is one of ours is the question
        return Answer(error=f"{type(error).__name__}: {error}", ours=False)
