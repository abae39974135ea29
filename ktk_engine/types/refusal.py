"""The text of a refusal of rows: the dataset, what is wrong, an example, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ktk_engine.messages import PYTHON, Message, Remedy, Voice, joined, remedies_of, spoken

REFUSED_UNWRITTEN = "was refused (nothing was written)"
REFUSED_UNCOMMITTED = "was refused (nothing was committed)"


@dataclass(frozen=True)
class WriteProblem:
    """What is wrong with a write."""

    reason: object  # what is wrong, as a sentence
    fix: object  # what to do about it, as a sentence: text, remedy or message
    example: str = ""  # a row, or values of one
    error: str = ""  # Arrow's message

    def __str__(self) -> str:
        return self.said(PYTHON)

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """The remedies in reason and fix."""
        return remedies_of(self.reason, self.fix)

    def said(self, voice: Voice) -> str:
        """The lines of the message in a voice."""
        lines = [f"- {spoken(self.reason, voice)}"]
        if self.example:
            lines.append(f"  Example: {self.example}")
        if self.error:
            lines.append(f"  Arrow says: {self.error}")
        return "\n".join([*lines, f"  Fix: {spoken(self.fix, voice)}"])


def refusal(uuid: str, problems: Iterable[object], how: str = REFUSED_UNWRITTEN) -> Message:
    """Say that a dataset was refused; each problem is a text of one or more lines."""
    return joined("\n", [f"Dataset {uuid} {how}:", *problems])
