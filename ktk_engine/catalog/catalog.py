"""The relations of a store by the names that SQL knows: datasets, views and cubes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from ktk_engine.catalog.view import FOLDER as VIEW_FOLDER
from ktk_engine.catalog.view import ViewDocument, parse_view, view_key, view_name
from ktk_engine.cube.dataset_uuid import is_in_cube, split_uuid
from ktk_engine.errors import ConsistencyError, DatasetNotFoundError, ObjectNotFoundError
from ktk_engine.format.load_document import list_documents
from ktk_engine.log.entry import DatasetEntry
from ktk_engine.log.names import cubes_of_name
from ktk_engine.log.scope import FOLDER, LogScope, cube_scope, scope_of
from ktk_engine.log.state import State, resolve
from ktk_engine.messages import Message, Remedy
from ktk_engine.store.ask_all import ask_all
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import is_uuid
from ktk_engine.types.identifier import Identifier

Kind = Literal["dataset", "view"]
_CUBE = "cube:"


@dataclass(frozen=True)
class Relation:
    """Something that can follow FROM."""

    name: str
    kind: Kind  # a `dataset` holds rows, a `view` is a stored query or a cube
    uuid: str = ""  # empty for a view
    # its entry in the log of its cube, if it has one
    entry: DatasetEntry | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Catalog:
    """The names in a store, listed at once; the log of a cube is read if a name may need it."""

    store: ObjectStore
    views: tuple[str, ...]
    published: tuple[str, ...]  # uuids of datasets with a document
    cubes: tuple[str, ...]  # with a log
    tables: frozenset[str]  # with a log

    @classmethod
    def of(cls, store: ObjectStore) -> Catalog:
        """List the names of a store, with four shallow listings."""
        listings: list[Callable[[], list[str]]] = [
            lambda: store.list_names(VIEW_FOLDER),
            lambda: list_documents(store),
            lambda: _logged(store, "cube"),
            lambda: _logged(store, "dataset"),
        ]
        views, published, cubes, tables = ask_all(store, _call, listings)
        names = filter(is_uuid, map(view_name, views))  # we write no others
        return cls(store, tuple(names), tuple(published), tuple(cubes), frozenset(tables))

    @cached_property
    def relations(self) -> list[Relation]:
        """All relations, sorted by name; see `list_relations`."""
        found = [Relation(name, "view") for name in self.views]
        datasets = _datasets(self.store, self.published, self.cubes, self.tables)
        for uuid, entry in datasets.items():
            found.append(Relation(relation_name(uuid, entry), "dataset", uuid, entry))
        return sorted(found, key=lambda relation: (relation.name, relation.uuid))

    def named(self, name: str) -> list[Relation]:
        """The relations of a name in any letter case.

        A view or a table is written only if no dataset of a cube has its name. So the logs of cubes
        are not read for such a name, unless another program wrote the table.
        """
        wanted = Identifier(name)
        found = self._plain.get(wanted, [])
        if wanted not in self._ids_in_cubes and all(
            not item.uuid or item.uuid in self.tables for item in found
        ):
            hidden = self._hidden(wanted)
            if found or hidden:
                return [*found, *hidden]
        return self.known_as(name)

    def known_as(self, name: str) -> list[Relation]:
        """All relations of a name in any letter case, from the logs of cubes that may have it."""
        wanted = Identifier(name)
        if wanted not in self._known:
            self._known[wanted] = self._known_as(name, wanted)
        return self._known[wanted]

    @cached_property
    def _known(self) -> dict[Identifier, list[Relation]]:
        return {}

    def _known_as(self, name: str, wanted: Identifier) -> list[Relation]:
        noted = cubes_of_name(self.store, name, self.cubes)
        if noted is None:
            return [item for item in self.relations if Identifier(item.name) == wanted]
        # Other programs note no names, and name a dataset by its id.
        alike = [uuid for uuid in self.published if Identifier(split_uuid(uuid)[1]) == wanted]
        read = {*noted, *(split_uuid(uuid)[0] for uuid in alike if is_in_cube(uuid))}
        part = replace(
            self,
            published=tuple(u for u in self.published if u in alike or split_uuid(u)[0] in read),
            cubes=tuple(cube for cube in self.cubes if cube in read),
            tables=frozenset(table for table in self.tables if Identifier(table) == wanted),
        )
        return [item for item in part.relations if Identifier(item.name) == wanted]

    @cached_property
    def _plain(self) -> dict[Identifier, list[Relation]]:
        """Views, and tables with a document."""
        tables = (uuid for uuid in self.published if not is_in_cube(uuid))
        views = (Relation(name, "view") for name in self.views)
        return _grouped([*views, *(Relation(uuid, "dataset", uuid) for uuid in tables)])

    @cached_property
    def _ids_in_cubes(self) -> set[Identifier]:
        """Names of datasets in cubes, for those whose models do not give them another one."""
        return {Identifier(split_uuid(u)[1]) for u in self.published if is_in_cube(u)}

    def _hidden(self, wanted: Identifier) -> list[Relation]:
        """Tables of a name that have a log and no document."""
        names = self.tables.difference(self.published)
        alike = [name for name in names if Identifier(name) == wanted]
        states = _states(self.store, "dataset", alike, {})
        return [Relation(uuid, "dataset", uuid) for state in states for uuid in state.datasets]

    def find(self, name: str) -> Relation | None:
        """Find a relation by name in any letter case; a `ConsistencyError` if several have it.

        `cube:<prefix>` and `dataset:<uuid>` work in any store, even one that only Kartothek wrote.
        The uuid alone finds a dataset of a cube.
        """
        kind, _, wanted = name.partition(":")
        if kind in ("cube", "dataset") and wanted:
            return self._addressed(kind, wanted)
        found = self.named(name)
        if len(found) > 1:
            raise ConsistencyError(_ambiguous(name, found))
        if not found and is_in_cube(name):
            return self._addressed("dataset", name)
        return found[0] if found else None

    def _addressed(self, kind: str, wanted: str) -> Relation | None:
        """Find a cube by its prefix, or a dataset by its uuid."""
        scope = cube_scope(wanted) if kind == "cube" else scope_of(wanted)
        logged = scope.name in (self.cubes if scope.kind == "cube" else self.tables)
        published = list(filter(scope.owns, self.published))
        if not (logged or published):
            return None
        datasets = resolve(self.store, scope, published).datasets
        if kind == "cube":
            return Relation(_CUBE + wanted, "view") if datasets else None
        if wanted not in datasets:
            return None
        entry = datasets[wanted].entry if scope.kind == "cube" else None
        return Relation(relation_name(wanted, entry), "dataset", wanted, entry)


def list_relations(store: ObjectStore) -> list[Relation]:
    """List the relations of a store, sorted by name, with a few shallow listings.

    It includes datasets that are committed but not published, such as an enrichment without its
    seed.
    """
    return Catalog.of(store).relations


def _ambiguous(name: str, found: list[Relation]) -> Message:
    """Say how each of several relations of one name is addressed."""
    names = dict.fromkeys(relation.name for relation in found)
    if len(names) > 1:
        return Message(
            f"The name {name} means several relations, {' and '.join(names)}, whose names "
            "differ in letter case only, which SQL ignores. ",
            Remedy("spelled_alike"),
        )
    uuids = [relation.uuid for relation in found if relation.uuid]
    others = "" if len(uuids) == len(found) else " and a view"
    quoted = " or ".join(f"`dataset:{uuid}`" for uuid in uuids[:2])
    out = f" To drop the view: drop view {name}." if others else ""
    return Message(
        f"The name {name} means several relations: {', '.join(uuids)}{others}. ",
        Remedy("say_dataset", quoted=quoted, uuid=uuids[0]),
        out,
    )


def _grouped(relations: Iterable[Relation]) -> dict[Identifier, list[Relation]]:
    """Group relations by name."""
    grouped: dict[Identifier, list[Relation]] = defaultdict(list)
    for relation in relations:
        grouped[Identifier(relation.name)].append(relation)
    return dict(grouped)


def read_view(store: ObjectStore, name: str) -> ViewDocument | None:
    """Read a view's document; None without one. A cube by its prefix needs none."""
    if name.startswith(_CUBE):
        return ViewDocument(name, "cube", cube=name.removeprefix(_CUBE))
    key = view_key(name)
    try:
        return parse_view(store.get(key), key)
    except ObjectNotFoundError:
        return None


def cube_state(view: ViewDocument, state_in: Callable[[str], State]) -> State:
    """Give the scope of a cube as its virtual table reads it.

    `state_in` gives the scope in a schema or in the store at an address, and in the view's own
    schema for an empty text. Raises a `DatasetNotFoundError` if an external dataset is gone.
    """
    own = state_in("")
    others = {own.scope.uuid_of(name): state_in(place) for name, place in view.external.items()}
    for uuid, state in others.items():
        if uuid not in state.datasets:
            raise DatasetNotFoundError(
                f"Cube {view.name} reads {uuid} from {state.store.url}, which no longer has "
                "this dataset. ",
                Remedy("build_cube_again"),
            )
    return own.joined_with(others)


def relation_name(uuid: str, entry: DatasetEntry | None = None) -> str:
    """The name of a dataset in SQL: its model's, else its id within the cube, else its uuid."""
    return (entry.relation if entry else "") or split_uuid(uuid)[1] or uuid


def list_scopes(store: ObjectStore) -> list[LogScope]:
    """Every scope that has a log, cubes first, including those whose datasets were all removed."""
    return [LogScope(kind, name) for kind in ("cube", "dataset") for name in _logged(store, kind)]


def _datasets(
    store: ObjectStore, published: Iterable[str], cubes: Iterable[str], tables: Iterable[str]
) -> dict[str, DatasetEntry | None]:
    """Uuids of all datasets, published or only in a log; those of cubes with their log entries."""
    found: dict[str, DatasetEntry | None] = dict.fromkeys(published)
    known = _by_cube(published)
    for state in _states(store, "cube", cubes, known):
        found |= {uuid: item.entry for uuid, item in state.datasets.items()}
        for uuid in state.unpublished_removals:
            found.pop(uuid, None)
    hidden = [name for name in tables if name not in found]
    for state in _states(store, "dataset", hidden, {}):
        found |= dict.fromkeys(state.datasets)
    return found


def _by_cube(uuids: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for uuid in uuids:
        found[split_uuid(uuid)[0]].append(uuid)
    return found


def _call(listing: Callable[[], list[str]]) -> list[str]:
    return listing()


def _states(
    store: ObjectStore, kind: str, names: Iterable[str], published: Mapping[str, list[str]]
) -> list[State]:
    """Resolve scopes whose published documents are listed already."""
    return ask_all(
        store, lambda name: resolve(store, LogScope(kind, name), published.get(name, ())), names
    )


def _logged(store: ObjectStore, kind: str) -> list[str]:
    return [name.rstrip("/") for name in store.list_names(f"{FOLDER}/{kind}")]
