"""Interfaces for reading and writing data files, in the driver and in tasks."""

from __future__ import annotations

from typing import Protocol


class Parts(Protocol):
    """An object written in parts; it is invisible until finished."""

    def write(self, data: bytes) -> None:
        """Write the next part of some megabytes."""

    def finish(self) -> None:
        """Make the object visible."""

    def abandon(self) -> None:
        """Abandon the object; in tasks, what was written may become visible."""


class DataFiles(Protocol):
    """Reads and writes immutable objects; safe between threads."""

    def get(self, key: str) -> bytes:
        """Read an object."""

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Read at least one byte of an object; fewer than `length` at its end."""

    def size(self, key: str) -> int:
        """Tell an object's size in bytes."""

    def create(self, key: str, data: bytes) -> None:
        """Write an object; in the driver, only if it does not exist."""

    def create_in_parts(self, key: str) -> Parts:
        """Start an object that is too large for one request."""
