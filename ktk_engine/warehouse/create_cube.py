"""Stores a cube's virtual table: the datasets that it joins, and where they are."""

from __future__ import annotations

from collections.abc import Collection

from ktk_engine.catalog.catalog import Relation
from ktk_engine.catalog.view import ViewDocument, named_by_cube_comment
from ktk_engine.cube.dataset_uuid import is_in_cube, split_uuid
from ktk_engine.cube.discovery import find_seed
from ktk_engine.errors import ConfigurationError
from ktk_engine.log.scope import cube_scope
from ktk_engine.log.state import resolve
from ktk_engine.messages import Remedy
from ktk_engine.plan.plan_cube import load_cube
from ktk_engine.warehouse.actor import Actor
from ktk_engine.warehouse.relations import Relations, kept_by_view, replace_view


def create_cube(
    relations: Relations,
    schema: str,
    name: str,
    sql: str,
    actor: Actor,
    deferred: Collection[tuple[str, str]] = (),
) -> ViewDocument:
    """Store a cube's virtual table from the comment that `cube_of` compiles to.

    `deferred` names the datasets, by schema and name, that may be in other schemas and stores.
    Raises a `ConfigurationError` if the comment is missing or the models are not datasets of one
    cube, and a `ConsistencyError` if the name is taken or datasets of several stores do not fit
    together.
    """
    store = relations.warehouse.create_schema(schema)
    found = [
        _in_cube(relations, f"{schema}.{name}", schema, place, deferred)
        for place in named_by_cube_comment(name, sql)
    ]
    uuids = sorted({relation.uuid for _, relation in found})
    prefixes = {split_uuid(uuid)[0] for uuid in uuids}
    if len(prefixes) != 1:
        raise ConfigurationError(
            f"Cube {schema}.{name}: its datasets belong to several cubes: {', '.join(uuids)}. ",
            Remedy("one_cube"),
        )
    (prefix,) = prefixes
    view = ViewDocument(
        name,
        "cube",
        cube=prefix,
        datasets=tuple(split_uuid(uuid)[1] for uuid in uuids),
        external={split_uuid(item.uuid)[1]: place for place, item in found if place},
        **kept_by_view(store, name, actor),
    )
    seed = find_seed(prefix, resolve(store, cube_scope(prefix)).snapshots_by_id())
    if seed and seed not in view.datasets and not view.external:
        raise ConfigurationError(
            f"Cube {schema}.{name}: cube {prefix} has the seed dataset {seed}, which is not "
            "listed. It says which rows exist. ",
            Remedy("list_seed"),
        )
    # Raises if there is no seed dataset among them.
    load_cube(relations.cube_state(schema, view), view.datasets)
    replace_view(store, view, actor)
    return view


def _in_cube(
    relations: Relations,
    cube: str,
    schema: str,
    place: tuple[str, str],
    deferred: Collection[tuple[str, str]],
) -> tuple[str, Relation]:
    """Find a dataset that `cube_of` names, with its schema or address if not the cube's own."""
    where, name = place
    shown = f"{place[0]}.{place[1]}"
    is_here = relations.is_same_store(where, schema)
    found = relations.behind(where, name) if is_here or place in deferred else None
    if found is not None and is_in_cube(found[1].uuid):
        return ("" if relations.is_same_store(found[0], schema) else found[0]), found[1]
    if (where == schema or is_here) and relations.find(where, name) is None:
        raise ConfigurationError(
            f"Cube {cube}: there is no {shown} yet. ",
            Remedy("whole_cube", select=cube.partition(".")[2]),
        )
    raise ConfigurationError(
        f"Cube {cube}: {shown} is not a cube dataset of schema {schema}. ", Remedy("in_cube")
    )
