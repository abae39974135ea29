import json

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.describe.history import read_history
from ktk_engine.describe.info import describe, list_contents
from ktk_engine.errors import DatasetNotFoundError
from ktk_engine.maintain.publish_documents import publish_documents  # deep: asks for none
from tests.support.changes import remove
from tests.support.dataset_builder import (
    DbtNode,
    build_nyc,
    build_table,
    weather,
    weather_builder,
    write_plain,
    write_plain_nyc,
)
from tests.support.documents import document_key
from tests.support.tiny_bounds import tiny_bounds


def test_cube(store):
    build_nyc(store)
    found = describe(store, "nyc")
    assert (found.kind, found.version, found.problem) == ("cube", 3, "")
    assert found.specification.dimension_columns == ("carrier", "hour")
    assert found.last_commit.operation == "rebuild"
    flights, airlines, weather = found.datasets
    assert (flights.id, flights.role, flights.rows, flights.files) == ("flights", "seed", 4, 2)
    assert (flights.partitions, flights.indexes) == (2, ("carrier", "hour"))
    assert flights.bytes and flights.published
    assert flights.columns["delay"] == "signed integer"
    assert (airlines.dimension_columns, airlines.partitions) == (("carrier",), 1)
    assert (weather.role, weather.dimension_columns) == ("enrichment", ("hour",))
    json.dumps(found.as_dict())


def test_indices_and_documents(store):
    with tiny_bounds():
        opened = Store.of(store)
        rows = pa.table({"d": [1, 1, 2, 2], "x": [1, 2, 1, 2], "v": [1, 2, 3, 4]})
        cube = opened.build("c", rows, dimension_columns=["x"], partition_by=["d"], indexes=["v"])
        cube.remove_partitions("d = 1")
        (seed,) = describe(store, "c").datasets
        assert seed.segments["v"] == {"segments": 1, "pairs": 4}
        (seed,) = describe(store, "c", count_gone=True).datasets
        assert seed.segments["v"] == {"segments": 1, "pairs": 4, "gone": 2}
        assert (seed.documented, seed.documents, seed.published) == (2, True, True)
        assert seed.documented_at == describe(store, "c").last_commit.time.isoformat()
        publish_documents(store, "c", wanted=False)
        (seed,) = describe(store, "c").datasets
        assert (seed.documented, seed.documented_at, seed.documents) == (None, "", False)


def test_plain_cube_and_table(store):
    write_plain_nyc(store)
    found = describe(store, "nyc")
    assert (found.version, found.last_commit) == (0, None)
    assert found.datasets[0].rows is None and found.datasets[0].bytes
    assert found.datasets[0].published and "another program" in found.datasets[0].note
    assert describe(store, "nyc", count_rows=True).datasets[0].rows == 4
    write_plain(store, "plain", pa.table({"a": [1]}))
    assert [item.role for item in describe(store, "plain").datasets] == ["table"]
    assert [(item.name, item.rows) for item in list_contents(store)] == [
        ("nyc", None),
        ("plain", None),
    ]


def test_without_a_seed(store):
    weather_builder(store).commit_rebuild(weather())
    found = describe(store, "nyc")
    assert found.specification is None
    assert "no seed dataset yet" in found.problem
    assert not found.datasets[0].published


def test_dataset_with_a_problem_is_described_as_far_as_possible(store):
    build_nyc(store)
    store.delete([document_key("nyc++weather")])
    weather = describe(store, "nyc").datasets[2]
    assert "removed by another program" in weather.problem
    assert (weather.rows, weather.published) == (4, False)
    assert list_contents(store)[0].problem


def test_list(store):
    build_nyc(store)
    build_table(store)
    build_table(store, "gone")
    remove(store, "gone")
    cube, table = list_contents(store)
    assert (cube.name, cube.datasets, cube.rows, cube.files) == ("nyc", 3, 4, 5)
    assert (table.name, table.kind, table.rows, table.version) == ("plain", "table", 3, 1)


def test_unknown_name(store):
    with pytest.raises(DatasetNotFoundError, match="does not exist"):
        describe(store, "nyc")
    store.root.mkdir()
    with pytest.raises(DatasetNotFoundError, match="It is empty"):
        describe(store, "nyc")
    build_nyc(store)
    with pytest.raises(DatasetNotFoundError, match="Did you mean nyc"):
        describe(store, "nyx")
    with pytest.raises(DatasetNotFoundError, match="It has: nyc"):
        describe(store, "something/else")


def test_history(store):
    build_table(store)
    table = pa.table({"a": [1, 2]})
    DbtNode(store, "plain").commit_append(table, node="model.x")
    remove(store, "plain")
    entries = read_history(store, "plain")
    assert [(e.version, e.operation) for e in entries] == [
        (3, "remove"),
        (2, "append"),
        (1, "rebuild"),
    ]
    deltas = [(c.rows_delta, c.files_delta) for e in entries for c in e.changes]
    assert deltas == [(-5, -2), (2, 1), (3, 1)]
    assert entries[1].history == {"node": "model.x"}
    assert read_history(store, "plain", 2) == entries[:2]
    assert read_history(store, "plain", 1) == entries[:1]
    json.dumps([entry.as_dict() for entry in entries])


def test_history_of_what_kartothek_wrote(store):
    write_plain(store, "plain", pa.table({"a": [1]}))
    assert read_history(store, "plain") == []
