import pytest

from ktk_engine.errors import ConsistencyError, DatasetNotFoundError
from ktk_engine.maintain.remove import remove
from tests.support.committed import cube_scope, resolve, version_of
from tests.support.dataset_builder import (
    build_nyc,
    build_table,
    flights,
    flights_builder,
    write_plain_nyc,
)
from tests.support.documents import list_documents
from tests.support.stores import keys

CUBE = cube_scope("nyc")


def test_enrichment(store):
    build_nyc(store)
    files = {key for key in keys(store, "nyc++weather/") if key.endswith(".parquet")}
    done = remove(store, "nyc", "weather", {"command": "test"})
    assert (done.version, done.datasets, done.warning) == (4, ("weather",), "")
    state = resolve(store, CUBE)
    assert set(state.datasets) == {"nyc++flights", "nyc++airlines"}
    assert (state.head.operation, state.head.history) == ("remove", {"command": "test"})
    assert list_documents(store) == ["nyc++airlines", "nyc++flights"]
    assert files <= keys(store)
    assert not [key for key in keys(store) if "/intent/" in key]


def test_seed_is_needed(store):
    build_nyc(store)
    with pytest.raises(ConsistencyError, match="airlines, weather depend on"):
        remove(store, "nyc", "flights")
    with pytest.raises(ConsistencyError, match="cube of 3 datasets: flights, airlines, weather"):
        remove(store, "nyc")
    assert version_of(store, CUBE) == 3


@pytest.mark.parametrize("dataset", ["flights", None])
def test_cascade_is_one_commit_and_takes_the_seed_first(store, dataset):
    build_nyc(store)
    store.calls.clear()
    done = remove(store, "nyc", dataset, cascade=True)
    assert done.datasets == ("flights", "airlines", "weather")
    assert done.version == 4
    assert resolve(store, CUBE).datasets == {}
    deleted = [key for method, key in store.calls if method == "delete" and "by-dataset" in key]
    assert [key.partition(".")[0] for key in deleted] == [f"nyc++{n}" for n in done.datasets]
    flights_builder(store).commit_rebuild(flights())
    assert version_of(store, CUBE) == 5


def test_seed_alone(store):
    flights_builder(store).commit_rebuild(flights())
    assert remove(store, "nyc", "flights").datasets == ("flights",)


def test_table(store):
    build_table(store)
    with pytest.raises(DatasetNotFoundError, match="is a table"):
        remove(store, "plain", "x")
    assert remove(store, "plain").version == 2
    with pytest.raises(DatasetNotFoundError, match="no longer has a cube or table plain"):
        remove(store, "plain")


def test_plain_cube(store):
    write_plain_nyc(store)
    assert remove(store, "nyc", "weather").version == 2  # the first lets the log know what goes
    state = resolve(store, CUBE)
    assert list(state.datasets) == ["nyc++flights"]
    assert not state.datasets["nyc++flights"].foreign
    assert not state.datasets["nyc++flights"].problem
    with pytest.raises(ConsistencyError, match="seed"):
        write_plain_nyc(store)
        remove(store, "nyc", "flights")


def test_unknown(store):
    build_nyc(store)
    with pytest.raises(DatasetNotFoundError, match="Did you mean weather"):
        remove(store, "nyc", "wether")
    with pytest.raises(DatasetNotFoundError, match="Did you mean nyc"):
        remove(store, "nyk", "weather")
    with pytest.raises(DatasetNotFoundError, match="Name the cube to query it"):
        remove(store, "nyc++weather")


def test_what_is_gone_is_said_to_be_gone(store):
    build_table(store, "gone")
    build_table(store, "other")
    remove(store, "gone")
    with pytest.raises(DatasetNotFoundError) as caught:
        remove(store, "gone")
    assert "no longer has a cube or table gone" in str(caught.value)
    assert "Did you mean" not in str(caught.value)
    with pytest.raises(DatasetNotFoundError, match=r"Did you mean other\? It has: other\.$"):
        remove(store, "othre")


def test_a_dataset_that_is_gone_is_said_to_be_gone(store):
    build_nyc(store)
    remove(store, "nyc", "weather")
    with pytest.raises(DatasetNotFoundError, match=r"no dataset weather\. It has: "):
        remove(store, "nyc", "weather")
