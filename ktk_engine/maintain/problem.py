"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """Something that contradicts the committed schema."""

    dataset: str  # id; empty: the cube as a whole
    file: str  # key; empty: the dataset as a whole
    column: str  # empty: the file as a whole
    expected: str  # what the schema or the snapshot says
    found: str  # what is there
    reason: str  # why that is wrong
