"""Names of schemas in any letter case."""

from __future__ import annotations

import pytest

from ktk_engine.errors import ConsistencyError
from ktk_engine.store.warehouse import STORE_KEY
from ktk_engine.warehouse.staged_warehouse import StagedWarehouse  # deep: a run of dbt has it
from tests.support.stores import Warehouse


@pytest.mark.parametrize("kind", [Warehouse, StagedWarehouse])
@pytest.mark.parametrize("opened", [True, False])
def test_the_first_spelling_stays(tmp_path, kind, opened):
    Warehouse(tmp_path).create_schema("Raw")
    warehouse = kind(tmp_path)
    if opened:
        assert warehouse.find_schema("Raw") is not None
    for name in ("raw", "RAW", "Raw"):
        assert warehouse.find_schema(name).url.endswith("/Raw")
        assert warehouse.create_schema(name).url.endswith("/Raw")
    assert warehouse.schemas() == ["Raw"]
    assert warehouse.find_schema("ra_w") is None
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["Raw"]


def test_a_dropped_schema_is_gone_in_every_spelling(tmp_path):
    warehouse = Warehouse(tmp_path)
    warehouse.create_schema("raw")
    warehouse.drop_schema("RAW")
    assert warehouse.find_schema("raw") is None
    assert warehouse.create_schema("Raw").url.endswith("/Raw")
    assert warehouse.find_schema("raw").url.endswith("/Raw")


def test_folders_that_are_no_schemas_do_not_count(tmp_path):
    (tmp_path / "RAW").mkdir()
    warehouse = Warehouse(tmp_path)
    assert warehouse.find_schema("raw") is None
    assert warehouse.create_schema("raw").url.endswith("/raw")
    assert warehouse.find_schema("Raw").url.endswith("/raw")


@pytest.mark.parametrize("name", ["raw", "RAW", "Raw"])
def test_two_schemas_of_others_are_refused_with_both_names(tmp_path, name):
    for folder in ("raw", "RAW"):
        (tmp_path / folder).joinpath(STORE_KEY).parent.mkdir(parents=True)
        (tmp_path / folder / STORE_KEY).write_text("{}")
    for ask in (Warehouse(tmp_path).find_schema, Warehouse(tmp_path).create_schema):
        with pytest.raises(ConsistencyError, match=r"schemas (RAW and raw|raw and RAW)"):
            ask(name)
