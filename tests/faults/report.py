"""One line for each thing that is tried: what, how many, outcome."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

PROPERTY = "faults"  # of a test; tests that run in several processes have it as well


@dataclass
class Tally:
    """Counts outcomes, and remembers each case that went wrong.

    Attributes:
        what: what is tried.
        outcomes: how often each good outcome came.
        broken: the cases that must not be, each with its name.
    """

    what: str
    outcomes: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def good(self, outcome: str) -> None:
        self.outcomes[outcome] += 1

    def bad(self, case: str, why: str) -> None:
        self.broken.append(f"{case}: {why}")

    def line(self) -> str:
        count = sum(self.outcomes.values()) + len(self.broken)
        parts = [f"{outcome} {number:,}" for outcome, number in sorted(self.outcomes.items())]
        return f"{self.what}: {count:,}; {', '.join(parts) or 'none'}; broken {len(self.broken)}"

    def finish(self, request: pytest.FixtureRequest) -> None:
        """Report, and fail if anything is broken."""
        self.report(request)
        self.require_whole()

    def report(self, request: pytest.FixtureRequest) -> None:
        """Put the line where it is shown after all tests."""
        request.node.user_properties.append((PROPERTY, self.line()))

    def require_whole(self) -> None:
        """Fail if anything is broken; the cases are in the message."""
        assert not self.broken, "\n\n".join([self.line(), *self.broken[:20]])
