"""Finds a cube or table, or a dataset of a cube, by its name."""

from __future__ import annotations

from ktk_engine.catalog.catalog import Catalog, list_scopes, read_view
from ktk_engine.cube.dataset_uuid import is_in_cube, split_uuid
from ktk_engine.errors import ConsistencyError, DatasetNotFoundError, InvalidKeyError
from ktk_engine.format.load_document import list_documents
from ktk_engine.log.scope import LogScope, cube_scope, scope_of
from ktk_engine.log.state import State, resolve
from ktk_engine.messages import Message, Remedy
from ktk_engine.store.ask_all import ask_all
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.local.local_store import missing_folder
from ktk_engine.types.did_you_mean import did_you_mean

_DOCUMENT = ".by-dataset-metadata."


def find_scope(store: ObjectStore, name: str, *, removed: bool = False) -> State:
    """Find a cube by name or a plain table by uuid; `removed` includes those without datasets.

    Raises a `DatasetNotFoundError` that lists what exists, or a `ConsistencyError` if a cube and a
    table share the name.
    """
    if not isinstance(name, str):
        raise InvalidKeyError(f"the name of a cube or table must be text, but is {name!r}")
    found = [state for state in _candidates(store, name) if state.datasets]
    if not found and removed:
        found = [state for state in _candidates(store, name) if state.head is not None]
    if len(found) > 1:
        raise ConsistencyError(
            f"{store.url} has a cube and a table named {name}. ", Remedy("build_under_other_name")
        )
    if not found:
        raise DatasetNotFoundError(_not_found(store, name))
    return found[0]


def present_scopes(store: ObjectStore) -> dict[LogScope, list[str]]:
    """Every cube and table that has a log or a published document, cubes first, by name.

    Each has the uuids of its published documents, so that `resolve` need not list them again.
    """
    found: dict[LogScope, list[str]] = {scope: [] for scope in list_scopes(store)}
    for uuid in list_documents(store):
        found.setdefault(scope_of(uuid), []).append(uuid)
    return dict(sorted(found.items(), key=lambda item: (item[0].kind, item[0].name)))


def present_states(store: ObjectStore) -> list[State]:
    """Resolve every cube and table of a store; the order is that of `present_scopes`."""
    return ask_all(store, lambda item: resolve(store, *item), present_scopes(store).items())


def is_schema(store: ObjectStore, folder: str = "") -> bool:
    """Whether a folder holds a document, or more than a lock and what a probe leaves."""
    names = store.list_names(folder)
    ours = store.list_names(f"{folder}/.ktk".lstrip("/")) if ".ktk/" in names else []
    return bool({*ours} - {"lock", "probe/"}) or any(_DOCUMENT in name for name in names)


def schemas_below(store: ObjectStore) -> list[str]:
    """The folders of a warehouse that are schemas, each a store of its own."""
    folders = [name[:-1] for name in store.list_names() if name.endswith("/")]
    return [name for name in folders if name != ".ktk" and is_schema(store, name)]


def _candidates(store: ObjectStore, name: str) -> list[State]:
    try:
        scopes = dict.fromkeys((cube_scope(name), scope_of(name)))
    except InvalidKeyError:
        return []  # an invalid name
    if is_in_cube(name):
        return []  # a dataset of a cube: use the cube's name
    return [resolve(store, scope) for scope in scopes]


def _not_found(store: ObjectStore, name: str) -> Message | str:
    cube, dataset = split_uuid(name)
    if cube and dataset:
        return (
            f"{name} is a dataset of cube {cube}. Name the cube to query it, {cube}, and both, "
            f"{cube} {dataset}, where a command asks for a dataset."
        )
    if known := _other_relation(store, name):
        return known
    states = present_states(store)
    if any(state.scope.name == name for state in states):
        return Message(
            f"{store.url} no longer has a cube or table {name}: it was removed. Its files stay "
            "until a clean-up; ",
            Remedy("history_of_removed", name=name),
            " says when and by whom.",
        )
    names = sorted({state.scope.name for state in states if state.datasets})
    if not names:
        reason = missing_folder(store) or _stores_below(store) or "It is empty."
        return f"{store.url} has no cube or table {name}. {reason}"
    hint = did_you_mean(name, names, "{}")
    return f"{store.url} has no cube or table {name}.{hint} It has: {', '.join(names)}."


def _stores_below(store: ObjectStore) -> str:
    """Name the stores in a store's folders, as each schema of a dbt project is one."""
    found = [f"{store.url}/{name}" for name in schemas_below(store)]
    return f"Its folders are stores: open {' or '.join(found[:5])}." if found else ""


def _other_relation(store: ObjectStore, name: str) -> Message | str:
    """Say which relation without a log has this name in SQL; empty for none."""
    try:
        view = read_view(store, name)
    except InvalidKeyError:
        return ""  # an invalid name
    if view is None:
        found = Catalog.of(store).known_as(name)
        uuids = [r.uuid for r in found if r.name == name and is_in_cube(r.uuid)]
        if not uuids:
            return ""
        datasets = {split_uuid(uuid)[1] for uuid in uuids}
        cubes = " or ".join(split_uuid(uuid)[0] for uuid in uuids)
        what = "a dataset" if datasets == {name} else f"the dataset {' or '.join(sorted(datasets))}"
        return f"{name} is {what} of cube {cubes}: give the cube's name, {cubes}."
    if view.kind == "cube":
        return f"{name} is a view of cube {view.cube}: give the cube's name, {view.cube}."
    return Message(
        f"{name} in {store.url} is a view: a stored query, which has no rows, files and versions "
        "of its own. Spark answers it: ",
        Remedy("ask_view", name=name),
    )


def find_dataset(state: State, dataset: str) -> str:
    """Find the uuid of a dataset by its id in the cube; a `DatasetNotFoundError` lists the ids."""
    known = {state.scope.dataset_id(uuid): uuid for uuid in state.datasets}
    if dataset in known:
        return known[dataset]
    hint = did_you_mean(dataset, known, "{}")
    raise DatasetNotFoundError(
        f"Cube {state.scope.name} has no dataset {dataset}.{hint} It has: {', '.join(known)}."
    )
