"""How a refusal of rows reads: which dataset, what is wrong, an example, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

REFUSED_UNWRITTEN = "was refused (nothing was written)"
REFUSED_UNCOMMITTED = "was refused (nothing was committed)"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with rows.

    Attributes:
        reason: what is wrong, as a sentence.
        fix: what to do about it, as a sentence.
        example: a row, or values of one; empty if there is none.
        error: what Arrow said; empty if nothing.
    """

    reason: str
    fix: str
    example: str = ""
    error: str = ""

    def __str__(self) -> str:
        """Give the lines of a message."""
        lines = [f"- {self.reason}"]
        if self.example:
            lines.append(f"  Example: {self.example}")
        if self.error:
            lines.append(f"  Arrow says: {self.error}")
        return "\n".join([*lines, f"  Fix: {self.fix}"])


def refusal(uuid: str, problems: Iterable[object], how: str = REFUSED_UNWRITTEN) -> str:
    """Say that a dataset was refused.

    Args:
        uuid: the dataset.
        problems: what is wrong, each as text of one or more lines.
        how: when it was refused, and what became of it.
    """
    return "\n".join([f"Dataset {uuid} {how}:", *map(str, problems)])
