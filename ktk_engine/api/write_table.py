"""Writes plain tables, as Python programs do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from ktk_engine.api.frames import Frame, rows_of
from ktk_engine.api.names import names_of
from ktk_engine.api.opened_store import OpenedStore
from ktk_engine.change.staged_rows import delete_rows, merge_table
from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.parameters import BoundText
from ktk_engine.cube.dataset_uuid import split_uuid
from ktk_engine.cube.specification import check_cube_name
from ktk_engine.cube.user_metadata import check_user_metadata
from ktk_engine.errors import ConfigurationError, ConsistencyError
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.scope import cube_scope, scope_of
from ktk_engine.log.state import State, resolve
from ktk_engine.plan.cube_query import deleting_condition
from ktk_engine.store.key import check_new_uuid
from ktk_engine.warehouse.actor import python_history, statement_actor
from ktk_engine.warehouse.name_claim import replaced_relations
from ktk_engine.write.build import build
from ktk_engine.write.retry import retry_on_conflict
from ktk_engine.write.rows import Rows
from ktk_engine.write.staging import staged

if TYPE_CHECKING:
    from ktk_engine.store.interface import ObjectStore

Mode = Literal["append", "overwrite", "merge"]


def write_table(
    store: OpenedStore,
    name: str,
    frame: Frame,
    mode: Mode,
    key: Sequence[str],
    layout: Mapping[str, Sequence[str] | None],
    metadata: Mapping[str, Any],
) -> None:
    """Write rows to a table, in one commit; see `Store.write_table`.

    Args:
        store: where.
        name: the table.
        frame: the rows.
        mode: what happens to the rows that it has.
        key: for a merge.
        layout: `partition_by`, `indexes` and `clustered_by`; None leaves it as it is.
        metadata: what users note about it.
    """
    if mode not in ("append", "overwrite", "merge"):
        raise ConfigurationError(
            f"Table {name}: mode must be append, overwrite or merge, but is {mode!r}. Nothing was "
            "written."
        )
    check_user_metadata(name, metadata)
    objects, rows = store._store, rows_of(name, frame)
    check_new_uuid(name)
    cube, dataset = split_uuid(name)
    if cube and dataset:
        raise ConsistencyError(
            f"{name} is the dataset {dataset} of cube {cube}, not a table: write to it with "
            f"Store.cube({cube!r}), by append, update or extend. Nothing was written."
        )
    check_cube_name("table", name)
    state = resolve(objects, scope_of(name))
    target = _target(objects, state, name, layout, metadata)
    target = replace(target, history=python_history())
    if target.uuid not in state.datasets or mode == "overwrite":
        build(objects, rows, target, state)
    elif mode == "append":
        build(objects, rows, replace(target, mode="append"), state)
    else:
        _merge(store, target, rows, names_of("key", key))


def delete_from(
    store: OpenedStore,
    name: str,
    where: str | BoundText | Condition | None,
    history: Mapping[str, str] | None = None,
) -> State | None:
    """Delete rows of a table; see `Table.delete`. Returns its state after that, if it is known."""

    def run(state: State) -> State | None:
        schema = state.snapshot(name).schema
        condition = deleting_condition(f"Table {name}", where, schema)
        with staged(state, f"delete from {name}", history or python_history()) as staging:
            delete_rows(staging, name, condition, store._cache)
        done = staging.transaction.committed
        return done.state if done else None

    return retry_on_conflict(store._store, scope_of(name), run)


def _merge(store: OpenedStore, target: WriteRequest, rows: Rows, key: Sequence[str]) -> None:
    if not isinstance(rows, pa.Table | pa.RecordBatchReader):
        from ktk_engine.change.merge import MergeBy, merge
        from ktk_engine.spark.session.spark_job import spark_job

        scanner = store._scanner(rows.sparkSession)
        with spark_job():  # to persist rows asks a server as well
            merge(scanner, rows, target, MergeBy(tuple(key)))
        return
    new = rows if isinstance(rows, pa.Table) else rows.read_all()

    def run(state: State) -> None:
        with staged(state, f"merge into {target.uuid}", target.history) as staging:
            merge_table(staging, target, new, key, store._cache)

    retry_on_conflict(store._store, target.scope, run)


def _target(
    store: ObjectStore,
    state: State,
    name: str,
    layout: Mapping[str, Sequence[str] | None],
    metadata: Mapping[str, Any],
) -> WriteRequest:
    """The table with the given layout; None keeps the present one."""
    known = WriteRequest.of(state.snapshot(name)) if name in state.datasets else WriteRequest(name)
    given: dict[str, Any] = {
        key: names_of(key, names) for key, names in layout.items() if names is not None
    }
    target = replace(known, **given, metadata=dict(metadata))
    if name in state.datasets:
        return target
    if resolve(store, cube_scope(name)).datasets:
        raise ConsistencyError(
            f"{name} of {store.url} is a cube: write to its datasets with Store.cube, or give the "
            "table another name. Nothing was written."
        )
    if found := replaced_relations(store, statement_actor().dataset(target)):
        raise ConsistencyError(
            f"{name} is the name of a view of {store.url}: drop it first, or give the table "
            f"another name. Nothing was written."
            if not found[0].uuid
            else f"{name} is the name of {found[0].uuid}. Nothing was written."
        )
    return target
