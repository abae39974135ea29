"""Follows a statement through views to all that it reads, by its text.

See docs/design/statements.md, What a statement reads.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ktk_engine.catalog.catalog import Relation
from ktk_engine.catalog.moment import Moment, moment_of
from ktk_engine.catalog.source_address import FileAddress, parse_address
from ktk_engine.errors import QueryError
from ktk_engine.files.others.plain_files import find_files
from ktk_engine.log.change.reads import Read, Reads
from ktk_engine.log.scope import scope_of
from ktk_engine.plan.statement.named_relations import NamedRelations, Plannable
from ktk_engine.plan.statement.query_text import QueryText
from ktk_engine.sql.determinism import Unknown, unknowns
from ktk_engine.sql.dialect import Dialect, has_open_literals
from ktk_engine.sql.references import Reference
from ktk_engine.sql.rename import rename
from ktk_engine.sql.statement import Statement, read_statement, words
from ktk_engine.store.trust import is_store_address
from ktk_engine.types.identifier import Identifier, Name
from ktk_engine.types.reserved_name import OWN_PREFIX

_MARKER = "__ktk_read_"
_MOST_VIEWS = 1_000


@dataclass(frozen=True)
class Place:
    """Where a statement names a dataset or a cube, itself or in a view."""

    schema: str
    relation: Relation
    moment: Moment | None  # the version that it names; None for the newest

    def __str__(self) -> str:
        return f"{self.schema}.{self.relation.name}"

    def plannable(self, relations: NamedRelations) -> Plannable:
        """Give what is read here, ready to be planned."""
        if self.relation.kind == "dataset":
            return relations.dataset(self.schema, self.relation.uuid, self.moment)
        return relations.cube(self.schema, self.relation.name, self.moment)

    def reads(self, relations: NamedRelations) -> Iterator[Read]:
        """The datasets that may be read here, each at its version."""
        if self.relation.kind == "dataset":
            uuid = self.relation.uuid
            state = relations.state(self.schema, scope_of(uuid), self.moment)
            yield Read(state, uuid, moment=str(self.moment or ""))
            return
        view = relations.view(self.schema, self.relation.name)
        state = relations.cube_state(self.schema, view, self.moment)
        named = [state.scope.uuid_of(name) for name in view.datasets]
        for uuid in filter(state.datasets.__contains__, named or state.datasets):
            yield Read(state.holding(uuid), uuid, moment=str(self.moment or ""))


@dataclass
class Trace:
    """What a statement reads.

    Attributes:
        text: the statement, each place under a name of its own and views under those of `views`.
        places: by these names.
        unknown: what the text may compute differently from the same relations.
        words: all words of the statement and its views that may be names.
        files: of addresses on this machine, digests of sizes, times and places of their files.
        texts: of the views and cubes that are read, by their names.
    """

    statement: Statement
    relations: NamedRelations
    dialect: Dialect  # of the session; texts are in the default one
    functions: Collection[str] = ()
    text: str = ""
    places: dict[str, Place] = field(default_factory=dict)
    unknown: list[Unknown] = field(default_factory=list)
    words: set[Identifier] = field(default_factory=set)
    texts: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    views: QueryText = field(init=False)

    def __post_init__(self) -> None:
        self.views = QueryText(_unknown_columns)

    def reads(self) -> Reads:
        """All datasets that the statement may read, at their versions in `relations`."""
        found = (item for place in self.places.values() for item in place.reads(self.relations))
        return Reads(tuple(found))

    def work(self) -> Mapping[str, str]:
        """Digests of the statement, of each view and cube that it reads through, and of files."""
        found = {"SQL": self.statement.sql}
        found |= {f"view {name}": text for name, text in self.texts.items()}
        found |= {f"files {address}": text for address, text in self.files.items()}
        return {name: _digest(text) for name, text in found.items()}

    def _are_files(self, parts: Name) -> bool:
        """Note the files of this machine at an address; whether these are all that it names."""
        address = _files(parts)
        if address is None or not _on_this_machine(address):
            return False
        try:
            stamps = [_stamp(file.path) for file in find_files(address.location)]
        except OSError:
            return False
        self.files[str(address)] = _digest(repr(sorted(stamps)))
        return True

    def follow(self, statement: Statement, path: Sequence[str] = (), within: str = "") -> str:
        """Note what a statement reads, of the views on the `path`; give its text."""
        if len(self.views.views) > _MOST_VIEWS:
            raise QueryError(f"The statement reads more than {_MOST_VIEWS:,} views.")
        where = f" in {path[-1]}" if path else ""
        found = unknowns(statement.sql, self.functions)
        self.unknown += [Unknown(item.what + where, item.line) for item in found]
        if OWN_PREFIX in statement.sql.lower():
            self.unknown.append(Unknown(f"has a name that begins with {OWN_PREFIX}{where}", 0))
        self.words |= words(statement.sql)
        names = {}
        for reference in statement.references:
            name = self._name(reference, path, within)
            if name:
                names[reference] = name
            elif not self._are_files(reference.parts):
                line = statement.sql.count("\n", 0, reference.start) + 1
                shown = _shown(reference.parts)
                what = f"reads {shown}, which no store holds"
                if _files(reference.parts):
                    what = f"reads {shown}, whose files are not on this machine"
                self.unknown.append(Unknown(what + where, line))
        return rename(statement.sql, names)

    def _name(self, reference: Reference, path: Sequence[str], within: str) -> str:
        """A name for what is read at a place; empty if no store knows it."""
        parts = reference.parts
        if len(parts) == 1 and within and not is_store_address(within):
            parts = Name((within, *parts))
        found = None if _files(parts) else self.relations.find(parts, within)
        if found is None:
            return ""
        schema, relation = found
        moment = moment_of(parts, reference.version, reference.timestamp, self.dialect.zone)
        place = Place(schema, relation, moment)
        view = self.relations.view(schema, relation.name) if relation.kind == "view" else None
        if view is not None:
            joined = (view.cube, view.datasets, sorted(view.external.items()))
            self.texts[str(place)] = repr(joined) if view.kind == "cube" else view.sql
        if view is not None and view.kind != "cube":
            if str(place) in path:
                raise QueryError(f"{place} reads itself: views refer to each other in a circle.")
            query = self.relations.query(schema, relation.name)
            return self.views.view(self.follow(query, (*path, str(place)), schema))
        name = f"{_MARKER}{len(self.places)}"
        self.places[name] = place
        return name


def _files(parts: Name) -> FileAddress | None:
    address = parse_address(parts[0]) if len(parts) == 3 else None
    return address if isinstance(address, FileAddress) else None


def _on_this_machine(address: FileAddress) -> bool:
    """Whether files alone say what is read, without what options name elsewhere."""
    is_local = address.location.startswith(("/", "file:/"))
    return is_local and not any("/" in value for _, value in address.options)


def _stamp(path: str) -> tuple[str, int, int, int, int]:
    """What changes with the content of a file."""
    found = os.stat(path)
    return (path, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def trace(
    sql: str, relations: NamedRelations, dialect: Dialect, functions: Collection[str] = ()
) -> Trace:
    """Follow a statement of a session's dialect to all that it reads; see `Trace`.

    `functions` are those of the project; see `unknowns`. Raises a `KtkError` for what no statement
    can read.
    """
    text = dialect.in_default(sql) if has_open_literals(sql) else sql
    found = Trace(read_statement(text), relations, dialect, functions)
    found.text = found.follow(found.statement)
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def _shown(parts: Name) -> str:
    return ".".join(parts[1:] if len(parts) == 3 else parts)


def _unknown_columns(name: Name) -> Sequence[str]:
    raise QueryError(f"No store knows {name}.")
