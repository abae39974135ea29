import pytest

import ktk_engine
from ktk_engine.errors import DatasetNotFoundError
from tests.support.changes import remove
from tests.support.dataset_builder import build_nyc, build_table


def test_store(store):
    build_nyc(store)
    build_table(store)
    opened = ktk_engine.Store(store.root)
    assert opened.cubes() == ["nyc"]
    cube = opened.cube("nyc")
    assert (cube.name, cube.version, cube.datasets) == (
        "nyc",
        3,
        ["flights", "airlines", "weather"],
    )
    assert cube.specification.partition_columns == ("origin",)
    assert "gust" in cube.schema.names
    query = cube.query(columns=["delay"], where="origin = 'JFK' and gust > 3")
    assert query.plan.columns == ("delay",)
    assert query.explain() == repr(query)
    with pytest.raises(DatasetNotFoundError, match="Did you mean nyc"):
        opened.cube("nyk")
    with pytest.raises(DatasetNotFoundError, match="is a table"):
        opened.cube("plain")
    remove(store, "nyc", cascade=True)
    assert opened.cubes() == []


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'Stor'"):
        ktk_engine.Stor  # noqa: B018
