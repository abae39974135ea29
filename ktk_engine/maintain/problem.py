"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """Something that contradicts the committed schema.

    Attributes:
        dataset: the dataset's id; empty for the cube as a whole.
        file: key of the file; empty for the dataset as a whole.
        column: the column; empty for the file as a whole.
        expected: what the schema or the snapshot says.
        found: what is there.
        reason: why that is wrong.
    """

    dataset: str
    file: str
    column: str
    expected: str
    found: str
    reason: str
