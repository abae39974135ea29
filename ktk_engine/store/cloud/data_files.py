"""What reads and writes data files, in the driver and in tasks."""

from __future__ import annotations

from typing import Protocol


class Parts(Protocol):
    """An object that is written in parts; nobody sees it before it is finished."""

    def write(self, data: bytes) -> None:
        """Write the next part, some megabytes of it."""

    def finish(self) -> None:
        """Let it appear."""

    def abandon(self) -> None:
        """End it otherwise; in tasks, what was written may appear."""


class DataFiles(Protocol):
    """Reads and writes objects that never change; threads may share it."""

    def get(self, key: str) -> bytes:
        """Read an object."""

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Read a part of an object, at least one byte long; less where the object ends."""

    def size(self, key: str) -> int:
        """Tell an object's size in bytes."""

    def create(self, key: str, data: bytes) -> None:
        """Write an object; in the driver, only if there is none."""

    def create_in_parts(self, key: str) -> Parts:
        """Begin to write an object that is too large for one request."""
