"""A removed dataset comes back as its last version had it, or the refusal says why not."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from ktk_engine.errors import ConsistencyError, DatasetNotFoundError
from ktk_engine.maintain.remove import remove
from ktk_engine.maintain.versions.undrop import plan_undrop, undrop
from tests.support.committed import (
    DbtNode,
    builder_of,
    cube_scope,
    read_history,
    resolve,
    snapshot_of,
)
from tests.support.dataset_builder import (
    airlines,
    airlines_builder,
    build_nyc,
    build_table,
    commit_change,
    flights_builder,
    weather,
    weather_builder,
    write_plain_nyc,
)
from tests.support.documents import ViewDocument, add_view, list_documents
from tests.support.stores import keys

CUBE = cube_scope("nyc")


def test_an_enrichment_comes_back_with_its_files_name_and_builder(store):
    build_nyc(store)
    mine = DbtNode("model.p.weather", "p")
    commit_change(
        store,
        lambda commit_id: replace(
            weather_builder(store).append(weather(), commit_id), relation="wx", builder=mine
        ),
    )
    before = snapshot_of(store, "nyc++weather")
    document = store.get("nyc++weather.by-dataset-metadata.json")
    remove(store, "nyc", "weather")
    airlines_builder(store).commit_rebuild(airlines())
    assert plan_undrop(store, "nyc", "weather").version == 4
    assert undrop(store, "nyc", "weather", {"command": "test"}).version == 7
    state = resolve(store, CUBE)
    assert state.snapshot("nyc++weather").files.equals(before.files)
    assert state.snapshot("nyc++weather").indices == before.indices
    assert state.datasets["nyc++weather"].entry.relation == "wx"
    assert builder_of(state, "nyc++weather") == mine
    assert "nyc++weather" in list_documents(store)
    assert store.get("nyc++weather.by-dataset-metadata.json") != document  # another version
    newest = read_history(store, "nyc")[0]
    assert newest.operation == "undrop"
    assert newest.history == {"command": "test", "reason": "as version 4 had it"}


def test_a_table_and_a_whole_cube_come_back(store):
    build_table(store)
    remove(store, "plain")
    assert undrop(store, "plain").version == 3
    assert snapshot_of(store, "plain").rows == 3
    build_nyc(store)
    remove(store, "nyc", cascade=True)
    with pytest.raises(ConsistencyError, match="These were removed: airlines, flights, weather"):
        undrop(store, "nyc")
    for name in ("weather", "flights", "airlines"):
        undrop(store, "nyc", name)
    assert len(resolve(store, CUBE).datasets) == 3
    assert list_documents(store, "nyc") == ["nyc++airlines", "nyc++flights", "nyc++weather"]


def test_what_kartothek_wrote_comes_back_too(store):
    write_plain_nyc(store)
    before = snapshot_of(store, "nyc++weather")
    remove(store, "nyc", "weather")
    assert list_documents(store) == ["nyc++flights"]
    undrop(store, "nyc", "weather")
    assert snapshot_of(store, "nyc++weather").labels == before.labels


def test_what_is_there_or_never_was_is_said(store):
    build_nyc(store)
    with pytest.raises(ConsistencyError, match="exists: there is nothing to bring back"):
        undrop(store, "nyc", "weather")
    remove(store, "nyc", "weather")
    with pytest.raises(DatasetNotFoundError, match=r"weather\? These were removed: weather"):
        undrop(store, "nyc", "wether")
    weather_builder(store).commit_rebuild(weather())
    with pytest.raises(ConsistencyError, match=r"\('nyc'\).drop\('weather'\)"):
        undrop(store, "nyc", "weather")


def test_missing_files_are_named(store):
    build_nyc(store)
    remove(store, "nyc", "weather")
    key = min(k for k in keys(store, "nyc++weather/table/") if k.endswith(".parquet"))
    store.delete([key])
    before = keys(store)
    with pytest.raises(DatasetNotFoundError, match="1 of the files of version 3") as error:
        undrop(store, "nyc", "weather")
    assert key in str(error.value) and "Nothing was written" in str(error.value)
    assert keys(store) == before


def test_a_name_that_is_taken_is_refused(store):
    build_nyc(store)
    remove(store, "nyc", "weather")
    add_view(store, ViewDocument("weather", "view", sql="select 1"))
    with pytest.raises(ConsistencyError, match="now the name of the view weather"):
        undrop(store, "nyc", "weather")


def test_the_checks_of_the_cube_hold(store):
    build_nyc(store)
    remove(store, "nyc", "weather")
    table = airlines().append_column("gust", pa.array([1.0, 2.0]))
    airlines_builder(store).commit_rebuild(table)
    with pytest.raises(ConsistencyError, match="gust"):
        undrop(store, "nyc", "weather")
    assert flights_builder(store).uuid in resolve(store, CUBE).datasets
