"""The only module of the records that imports from inside the engine, and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

SCHEMA = "an"


# SQL in this process has no face of its own: dbt asks it for the rows of tests.
def rows_in_process(root: Path, text: str) -> list[Mapping[str, Any]]:
    """Answer a query without Spark; relations are those of the schema `an`."""
    from ktk_engine.plan.statement.named_relations import KnownStores
    from ktk_engine.store.local.local_store import LocalStore
    from ktk_engine.warehouse.in_process.local_sql import LocalSql

    store = LocalStore(root)
    local = LocalSql(KnownStores(lambda name: store if name == SCHEMA else None))
    return local.rows(text).to_pylist()


# A view of a cube is a model of dbt, which is slower to run than everything that asks it.
def create_view(root: Path, name: str, cube: str) -> None:
    """Give a cube a name in SQL."""
    from ktk_engine.catalog.view import ViewDocument, render_view, view_key
    from ktk_engine.store.local.local_store import LocalStore

    view = ViewDocument(name, "cube", "", cube)
    LocalStore(root).put(view_key(name), render_view(view))
