"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass

from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore


@dataclass(frozen=True)
class Problem:
    """Something that contradicts the committed schema."""

    dataset: str  # id; empty: the cube as a whole
    file: str  # key; empty: the dataset as a whole
    column: str  # empty: the file as a whole
    expected: str  # what the schema or the snapshot says
    found: str  # what is there
    reason: str  # why that is wrong


@dataclass(frozen=True)
class DatasetCheck:
    """What one dataset's files are compared with."""

    store: ObjectStore
    dataset: str
    snapshot: Snapshot
    deep: bool  # whether all that files hold is read

    def problem(
        self, key: str, expected: str, found: str, reason: str, column: str = ""
    ) -> Problem:
        """Say how a file differs from what it should be."""
        return Problem(self.dataset, key, column, expected, found, reason)
