"""Names of relations: those of a store, and cubes and datasets that have no document of ours."""

from __future__ import annotations

import pytest

from ktk_engine.catalog.catalog import Catalog, Relation, read_view
from ktk_engine.catalog.view import ViewDocument
from ktk_engine.errors import DatasetNotFoundError
from tests.support.dataset_builder import write_plain_nyc
from tests.support.stores import Warehouse


def test_a_cube_is_found_by_its_prefix_and_a_dataset_by_its_uuid(store):
    write_plain_nyc(store)
    known = Catalog.of(store)
    assert known.find("cube:nyc") == Relation("cube:nyc", "view")
    assert read_view(store, "cube:nyc") == ViewDocument("cube:nyc", "cube", cube="nyc")
    assert known.find("dataset:nyc++weather") == known.find("weather")
    for name in ("cube:ny", "cube:nyc++flights", "dataset:weather", "cube:", "nyc"):
        assert known.find(name) is None


def test_a_warehouse_opens_any_store_by_its_address_to_read_it(tmp_path, store):
    warehouse = Warehouse(tmp_path / "w")
    with pytest.raises(DatasetNotFoundError, match="There is no store at /no such"):
        warehouse.find_schema("/no such")
    write_plain_nyc(store)
    found = warehouse.find_schema(str(store.root))
    assert found is not None and found.url == store.url
    with pytest.raises(Exception, match=r"may only hold|not usable"):
        warehouse.create_schema(str(store.root))
