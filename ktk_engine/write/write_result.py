"""What a write did, for people and for its caller."""

from __future__ import annotations

from dataclasses import dataclass, field

from ktk_engine.formatting import counted, size
from ktk_engine.messages import Message


@dataclass(frozen=True)
class RowChanges:
    """Numbers of rows that a write changed."""

    inserted: int = 0  # new rows, except for updates
    updated: int = 0  # old rows of a merge whose key a new row has
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
    """What a write did."""

    uuid: str
    version: int  # of the dataset's log; where nothing changed, the version that has the rows
    rows: int  # of the new files
    files: int  # new ones
    bytes: int  # of the new files
    warning: str = ""  # why old readers may not see the write yet
    notes: tuple[str, ...] = ()  # other changes: new and omitted columns, enrichments taken out
    changes: RowChanges = field(default_factory=RowChanges)
    # Of the dataset, by a write that replaces single rows; else 0.
    rewritten_files: int = 0
    total_files: int = 0
    leaving: tuple[str, ...] = ()  # ids of datasets that it took out of the cube
    commit: str = ""  # the id of the commit that made `version`
    unchanged: bool = False  # all is as it was, byte for byte, so that there is no new version

    @property
    def message(self) -> Message:
        """What it did, for people."""
        same = [f"unchanged since version {self.version}"] if self.unchanged else []
        text = "; ".join([self._what, *same, *self.notes])
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
