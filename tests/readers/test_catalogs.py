"""What programs do to a published table that they know by a catalog."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine import Store
from tests.support.committed import check

pytest.importorskip("sqlalchemy")
from pyiceberg.catalog.sql import SqlCatalog


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "s")
    store.write_table("t", pa.table({"x": [1, 2]}))
    store.table("t").publish("iceberg")
    store.write_table("t", pa.table({"x": [3]}))
    return store


@pytest.fixture
def catalog(tmp_path, store):
    catalog = SqlCatalog("c", uri="sqlite://", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("n")
    newest = max((tmp_path / "s" / "t" / "iceberg" / "metadata").glob("v*.json"))
    catalog.register_table("n.t", f"file://{newest}")
    yield catalog
    catalog.engine.dispose()


def rows(store):
    return sorted(store.table("t").query().to_arrow(engine="local")["x"].to_pylist())


def test_a_dropped_table_loses_no_row(store, catalog):
    catalog.drop_table("n.t")
    assert rows(store) == [1, 2, 3]
    assert check(store._store, "t", deep=True).problems == ()


def test_a_purged_table_loses_rows_and_a_check_names_each_file(tmp_path, store, catalog):
    files = {str(file.relative_to(tmp_path / "s")) for file in tmp_path.rglob("*-0-0-1.parquet")}
    catalog.purge_table("n.t")
    found = {problem.file for problem in check(store._store, "t").problems}
    assert len(files) == 2 and files <= found


def test_a_commit_by_a_catalog_deletes_no_metadata_of_ours(tmp_path, store, catalog):
    table = catalog.load_table("n.t")
    for number in range(3):
        table.append(pa.table({"x": [number]}))
    names = {file.name for file in (tmp_path / "s" / "t" / "iceberg" / "metadata").iterdir()}
    assert {"v1.metadata.json", "v2.metadata.json", "version-hint.text"} <= names
    assert rows(store) == [1, 2, 3]
