"""Names that people give to commands, and what errors say about names without a cube or table."""

from __future__ import annotations

from pathlib import Path

import pytest

from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.errors import ConfigurationError, DatasetNotFoundError
from ktk_engine.warehouse.actor import statement_actor  # deep: who drops it
from ktk_engine.warehouse.relations import check_view_columns  # deep: asks for scopes
from tests.support.changes import Relations
from tests.support.dataset_builder import write_plain_nyc
from tests.support.stores import LocalStore, Warehouse


@pytest.fixture
def told(tmp_path: Path):
    """What somebody is told who asks for a name, in a store with a cube and a view."""
    warehouse = Warehouse(tmp_path)
    store = warehouse.create_schema("s")
    write_plain_nyc(store)
    relations = Relations(warehouse)
    relations.create_view("s", "v", "select 1 as a", {"a": "int"}, statement_actor())

    def ask(name: str) -> str:
        with pytest.raises(DatasetNotFoundError) as caught:
            find_scope(store, name)
        return str(caught.value)

    assert isinstance(store, LocalStore)
    return ask


def test_a_dataset_of_a_cube_is_called_one(told):
    assert told("weather") == "weather is a dataset of cube nyc: give the cube's name, nyc."


def test_a_view_is_called_one(told):
    assert "is a view: a stored query" in told("v")
    assert "select * from v" in told("v")


@pytest.mark.parametrize("name", ["ny", "a b", "../x", ""])
def test_what_is_no_relation_at_all_does_not_exist(told, name):
    assert f"no cube or table {name}" in told(name)


def test_a_view_names_each_column_once():
    check_view_columns("s.v", ["a", "b"])
    for twice in (["a", "b", "a"], ["a", "A"]):
        with pytest.raises(ConfigurationError, match=r"View s\.v: its query gives several columns"):
            check_view_columns("s.v", twice)
