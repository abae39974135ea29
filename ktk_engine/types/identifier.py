"""Names of relations and columns as SQL compares them.

In Spark two names are the same if they are equal in lower case. That is not case folding, where
`Maße` is `Masse`, and Unicode's normal forms are not applied. See docs/names.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Identifier:
    """A name of a relation, schema, tag or column, as it was written.

    It never equals a text, so that looking one up by a text cannot fail silently.
    """

    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identifier) and self.text.lower() == other.text.lower()

    def __hash__(self) -> int:
        return hash(self.text.lower())

    def __str__(self) -> str:
        return self.text


class Name(tuple[str, ...]):
    """A name in unquoted parts with their original case, such as schema and name.

    It is the tuple of its parts; `key` is what SQL compares.
    """

    __slots__ = ()

    def __new__(cls, parts: Iterable[str] = ()) -> Name:
        """Make a name of parts."""
        return super().__new__(cls, parts)

    @property
    def key(self) -> tuple[Identifier, ...]:
        """The parts, compared without case."""
        return tuple(map(Identifier, self))

    def __str__(self) -> str:
        return ".".join(self)


NO_NAME = Name()


def find_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is meant: the exact one, else the only one that equals it in SQL.

    None if there is no such name, or several.
    """
    names = tuple(known)
    if name in names:
        return name
    same = names_alike(name, names)
    return same[0] if len(same) == 1 else None


def names_alike(name: str, known: Iterable[str]) -> list[str]:
    """The distinct names that equal a name in SQL, including itself."""
    wanted = Identifier(name)
    return [other for other in dict.fromkeys(known) if Identifier(other) == wanted]


def find_names(names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Spell names as they are known; unknown ones stay. See `find_name`."""
    find = name_finder(known)
    return tuple(found if (found := find(name)) is not None else name for name in names)


def name_finder(known: Iterable[str]) -> Callable[[str], str | None]:
    """A function like `find_name` for many names among the same known ones."""
    there = dict.fromkeys(known)
    alike: dict[Identifier, list[str]] = {}

    def find(name: str) -> str | None:
        if name in there:
            return name
        if not alike:  # exact names, the usual ones, do without
            for other in there:
                alike.setdefault(Identifier(other), []).append(other)
        same = alike.get(Identifier(name), [])
        return same[0] if len(same) == 1 else None

    return find


def first_pair_alike(names: Iterable[str]) -> tuple[str, str] | None:
    """The first two names that SQL cannot distinguish, in their order."""
    seen: dict[Identifier, str] = {}
    for name in names:
        if (other := seen.setdefault(Identifier(name), name)) != name:
            return other, name
    return None
