"""What came out of one reference case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["passed", "failed", "by decision"]


@dataclass(frozen=True)
class Outcome:
    """The result of one case.

    Attributes:
        case: the name of the case, and of the query within it.
        status: "by decision" where we differ exactly as a decision predicts.
        detail: the first difference, or the decisions that explain it.
    """

    case: str
    status: Status
    detail: str = ""


def summary(outcomes: list[Outcome]) -> str:
    """Write the last line of a run.

    Args:
        outcomes: all results.

    Returns:
        "N passed, N failed, N by decision".
    """
    count = dict.fromkeys(("passed", "failed", "by decision"), 0)
    for outcome in outcomes:
        count[outcome.status] += 1
    return ", ".join(f"{number} {status}" for status, number in count.items())
