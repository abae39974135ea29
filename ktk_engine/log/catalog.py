"""The relations of a store by the names that SQL knows: datasets, views and cubes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ktk_engine.errors import ConsistencyError, ObjectNotFoundError
from ktk_engine.format.load_document import list_documents
from ktk_engine.format.view import FOLDER as VIEW_FOLDER
from ktk_engine.format.view import ViewDocument, parse_view, view_key, view_name
from ktk_engine.log.scope import FOLDER, SEPARATOR, Scope
from ktk_engine.log.state import resolve
from ktk_engine.store.interface import ObjectStore

Kind = Literal["dataset", "view"]
_CUBE = "cube:"


@dataclass(frozen=True)
class Relation:
    """Something that can stand behind FROM.

    Attributes:
        name: its name in the schema.
        kind: `dataset` holds rows, `view` is a stored query or a cube.
        uuid: the dataset's uuid; empty for a view.
    """

    name: str
    kind: Kind
    uuid: str = ""


def list_relations(store: ObjectStore) -> list[Relation]:
    """List the relations of a store, sorted by name; a few shallow listings.

    Datasets that are committed but not published (an enrichment without its seed dataset) are
    among them.

    Raises:
        StoreError: the store could not tell.
    """
    names = [view_name(name) for name in store.list_names(VIEW_FOLDER)]
    relations = [Relation(name, "view") for name in names]
    relations += [Relation(relation_name(uuid), "dataset", uuid) for uuid in _uuids(store)]
    return sorted(relations, key=lambda relation: (relation.name, relation.uuid))


def find_relation(relations: Mapping[str, list[Relation]], name: str) -> Relation | None:
    """Look a name up.

    Args:
        relations: those of a store, by name.
        name: a relation's name. In a store without documents of ours, a cube is found as
            `cube:<its prefix>`, and any dataset as `dataset:<its uuid>`.

    Raises:
        ConsistencyError: several relations have this name.
    """
    kind, _, wanted = name.partition(":")
    if kind in ("cube", "dataset") and wanted:
        return _by_uuid(relations, kind, wanted)
    found = relations.get(name, [])
    if len(found) > 1:
        owners = ", ".join(relation.uuid or "a view" for relation in found)
        raise ConsistencyError(
            f"The name {name} stands for several relations: {owners}. Rename one of the models, "
            "or give it an alias."
        )
    return found[0] if found else None


def _by_uuid(relations: Mapping[str, list[Relation]], kind: str, wanted: str) -> Relation | None:
    """Find a cube by its prefix, or a dataset by its uuid."""
    datasets = [item for items in relations.values() for item in items if item.uuid]
    if kind == "dataset":
        return next((item for item in datasets if item.uuid == wanted), None)
    if any(item.uuid.startswith(wanted + SEPARATOR) for item in datasets):
        return Relation(_CUBE + wanted, "view")
    return None


def by_name(relations: list[Relation]) -> dict[str, list[Relation]]:
    """Group relations by name."""
    grouped: dict[str, list[Relation]] = defaultdict(list)
    for relation in relations:
        grouped[relation.name].append(relation)
    return dict(grouped)


def read_view(store: ObjectStore, name: str) -> ViewDocument | None:
    """Read a view's document, None if there is none; a cube by its prefix needs none."""
    if name.startswith(_CUBE):
        return ViewDocument(name, "cube", cube=name.removeprefix(_CUBE))
    key = view_key(name)
    try:
        return parse_view(store.get(key), key)
    except ObjectNotFoundError:
        return None


def relation_name(uuid: str) -> str:
    """The name by which SQL knows a dataset: its id within the cube, or its uuid."""
    return uuid.partition(SEPARATOR)[2] or uuid


def list_scopes(store: ObjectStore) -> list[Scope]:
    """Every scope that has a log, cubes first; also those whose datasets were all removed."""
    return [Scope(kind, name) for kind in ("cube", "dataset") for name in _logged(store, kind)]


def _uuids(store: ObjectStore) -> list[str]:
    """Uuids of all datasets, published or only logged."""
    published = set(list_documents(store))
    found = set(published)
    for name in _logged(store, "cube"):
        state = resolve(store, Scope("cube", name))
        found.update(state.datasets)
        found.difference_update(state.unpublished_removals)
    for name in _logged(store, "dataset"):
        if name not in published:
            found.update(resolve(store, Scope("dataset", name)).datasets)
    return sorted(found)


def _logged(store: ObjectStore, kind: str) -> list[str]:
    return [name.rstrip("/") for name in store.list_names(f"{FOLDER}/{kind}")]
