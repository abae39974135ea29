"""What a write did to rows, as counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RowChanges:
    """Numbers of rows that a write changed.

    Attributes:
        inserted: new rows that replaced none one by one.
        updated: new rows of a merge that found an old row of their key.
        deleted: rows that went.
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def total(self) -> int:
        """All changed rows."""
        return self.inserted + self.updated + self.deleted

    def __str__(self) -> str:
        counts = (
            f"{self.inserted:,} inserted",
            f"{self.updated:,} updated" if self.updated else "",
            f"{self.deleted:,} deleted" if self.deleted else "",
        )
        return ", ".join(filter(None, counts))
