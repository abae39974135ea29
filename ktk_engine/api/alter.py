"""Changes columns, properties and layout of a dataset, as Python programs do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ktk_engine.api.opened_store import OpenedStore
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import State
from ktk_engine.maintain.properties import Notes
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.identifier import find_names
from ktk_engine.warehouse import alter as statements
from ktk_engine.warehouse.actor import python_history
from ktk_engine.warehouse.alter_statement import Alteration
from ktk_engine.write.alter.column_changes import ColumnChanges
from ktk_engine.write.check_write import check_write
from ktk_engine.write.present_rows import present_rows
from ktk_engine.write.retry import retry_on_conflict
from ktk_engine.write.staging import staged


def alter(
    store: OpenedStore,
    uuid: str,
    add: Mapping[str, pa.DataType | str],
    drop: Collection[str],
    rename: Mapping[str, str],
    properties: Mapping[str, Any],
) -> None:
    """Change columns and properties of a dataset; see `Cube.alter`."""
    types = {name: parse_type(t) if isinstance(t, str) else t for name, t in add.items()}
    dropped = (drop,) if isinstance(drop, str) else tuple(drop)
    kept = {key: value for key, value in properties.items() if value is not None}
    notes = Notes(set=kept, unset=tuple(key for key in properties if key not in kept))
    wanted = Alteration((uuid,), ColumnChanges(types, dropped, dict(rename)), notes)
    statements.alter(store._store, uuid, wanted, python_history())


def repartition(store: OpenedStore, name: str, columns: Collection[str]) -> None:
    """Lay a table out by other partition columns; see `Table.repartition`."""
    said = f"partitioned by {', '.join(columns) or 'nothing'}"
    history = {"reason": said, **python_history()}

    def run(state: State) -> None:
        base = state.snapshot(name)
        named = find_names(columns, base.schema.names)
        target = replace(WriteRequest.of(base), partition_by=named, full_refresh=True)
        if target.partition_by == base.partition_keys:
            return
        with staged(state, f"repartition {name}", history) as staging:
            rows = present_rows(state, base, store._cache.footers)
            staging.write(check_write(rows.schema, target, state), rows)

    retry_on_conflict(store._store, scope_of(name), run)
