"""How a refusal of rows reads: which dataset, what is wrong, an example, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ktk_engine.messages import PYTHON, Message, Remedy, Voice, joined, remedies_of, spoken

REFUSED_UNWRITTEN = "was refused (nothing was written)"
REFUSED_UNCOMMITTED = "was refused (nothing was committed)"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with rows.

    Attributes:
        reason: what is wrong, as a sentence; as is the fix.
        fix: what to do about it, as a sentence: a text, a remedy or a message.
        example: a row, or values of one; empty if there is none.
        error: what Arrow said; empty if nothing.
    """

    reason: object
    fix: object
    example: str = ""
    error: str = ""

    def __str__(self) -> str:
        return self.said(PYTHON)

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What reason and fix name."""
        return remedies_of(self.reason, self.fix)

    def said(self, voice: Voice) -> str:
        """Give the lines of a message in the words of a voice."""
        lines = [f"- {spoken(self.reason, voice)}"]
        if self.example:
            lines.append(f"  Example: {self.example}")
        if self.error:
            lines.append(f"  Arrow says: {self.error}")
        return "\n".join([*lines, f"  Fix: {spoken(self.fix, voice)}"])


def refusal(uuid: str, problems: Iterable[object], how: str = REFUSED_UNWRITTEN) -> Message:
    """Say that a dataset was refused.

    Args:
        uuid: the dataset.
        problems: what is wrong, each as text of one or more lines.
        how: when it was refused, and what became of it.
    """
    return joined("\n", [f"Dataset {uuid} {how}:", *problems])
