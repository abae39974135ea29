"""What a write did, for people and for its caller."""

from __future__ import annotations

from dataclasses import dataclass, field

from ktk_engine.formatting import counted, size
from ktk_engine.messages import Message


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


@dataclass(frozen=True)
class WriteResult:
    """What a write did.

    Attributes:
        uuid: the dataset.
        version: version of its log.
        rows: rows of the new files.
        files: number of new data files.
        bytes: their size in bytes.
        warning: why old readers may not see it yet; empty if they do.
        notes: what else changed: columns that are new or left out, enrichments taken out.
        changes: what it did to rows.
        rewritten_files: how many of the dataset's files were rewritten, by a write that replaces
            single rows.
        total_files: how many files the dataset had for such a write; 0 for any other.
        leaving: ids of the datasets that it took out of the cube.
    """

    uuid: str
    version: int
    rows: int
    files: int
    bytes: int
    warning: str = ""
    notes: tuple[str, ...] = ()
    changes: RowChanges = field(default_factory=RowChanges)
    rewritten_files: int = 0
    total_files: int = 0
    leaving: tuple[str, ...] = ()

    @property
    def message(self) -> Message:
        """What it did, for people."""
        text = "; ".join([self._what, *self.notes])
        return Message(text, " (", self.warning, ")") if self.warning else Message(text)

    def __str__(self) -> str:
        return str(self.message)

    @property
    def _what(self) -> str:
        if self.total_files:
            files = f"{self.rewritten_files:,} of {self.total_files:,} files rewritten"
            return f"{self.changes}; {files}"
        rows = str(self.changes) if self.changes.deleted else counted(self.rows, "row")
        return f"{rows}, {counted(self.files, 'file')}, {size(self.bytes)}"
