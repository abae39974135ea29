"""Names of relations and columns as SQL compares them.

Spark takes two names for one if they are equal in lower case. That is not case folding, for which
`Maße` is `Masse`, and Unicode's normal forms are not applied. See docs/names.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Identifier:
    """A name of a relation, schema, tag or column.

    It equals no text, so that a look-up by a text cannot miss it without a word.

    Attributes:
        text: the name as it was written, which is what people are shown.
    """

    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identifier) and self.text.lower() == other.text.lower()

    def __hash__(self) -> int:
        return hash(self.text.lower())

    def __str__(self) -> str:
        return self.text


class Name(tuple[str, ...]):
    """A name in parts, unquoted and with the letters that were written: schema and name, say.

    It is the tuple of its parts. `key` is what SQL compares of it.
    """

    __slots__ = ()

    def __new__(cls, parts: Iterable[str] = ()) -> Name:
        """Make a name of parts."""
        return super().__new__(cls, parts)

    @property
    def key(self) -> tuple[Identifier, ...]:
        """The parts, of which letter case is ignored."""
        return tuple(map(Identifier, self))

    def __str__(self) -> str:
        return ".".join(self)


NO_NAME = Name()


def find_name(name: str, known: Iterable[str]) -> str | None:
    """Find the name that is meant, as it is spelled.

    Args:
        name: as it was given, in any letter case.
        known: the names that there are.

    Returns:
        The name itself if it is known; else the only one that equals it for SQL. None if there is
        no such name, or several.
    """
    names = tuple(known)
    if name in names:
        return name
    same = names_alike(name, names)
    return same[0] if len(same) == 1 else None


def names_alike(name: str, known: Iterable[str]) -> list[str]:
    """Give the names, each once, that equal a name for SQL; the name itself is among them."""
    wanted = Identifier(name)
    return [other for other in dict.fromkeys(known) if Identifier(other) == wanted]


def find_names(names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Give names as they are spelled where they are known; see `find_name`. Others stay."""
    find = name_finder(known)
    return tuple(found if (found := find(name)) is not None else name for name in names)


def name_finder(known: Iterable[str]) -> Callable[[str], str | None]:
    """Give what finds many names among the same ones, each as `find_name` does."""
    there = dict.fromkeys(known)
    alike: dict[Identifier, list[str]] = {}
    for name in there:
        alike.setdefault(Identifier(name), []).append(name)

    def find(name: str) -> str | None:
        same = [name] if name in there else alike.get(Identifier(name), [])
        return same[0] if len(same) == 1 else None

    return find


def first_pair_alike(names: Iterable[str]) -> tuple[str, str] | None:
    """Find two names that SQL could not tell apart: an earlier one and a later one."""
    seen: dict[Identifier, str] = {}
    for name in names:
        if (other := seen.setdefault(Identifier(name), name)) != name:
            return other, name
    return None
