"""The names of relations."""

from __future__ import annotations

from collections.abc import Iterable


class Name(tuple[str, ...]):
    """A name in parts, unquoted and with the letters that were written: schema and name, say.

    It is the tuple of its parts. `key` is what Spark compares of it.
    """

    __slots__ = ()

    def __new__(cls, parts: Iterable[str] = ()) -> Name:
        """Make a name of parts."""
        return super().__new__(cls, parts)

    @property
    def key(self) -> tuple[str, ...]:
        """The parts in lower case: Spark takes names for equal that differ in case alone."""
        return tuple(part.lower() for part in self)

    def __str__(self) -> str:
        return ".".join(self)


NO_NAME = Name()
