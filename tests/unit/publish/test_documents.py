"""A cube or table whose commits write no documents for Kartothek."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import PublishError
from ktk_engine.log.scope import LogScope
from ktk_engine.maintain.publish_documents import publish_documents  # deep: asks for none
from ktk_engine.publish import published_indices
from tests.support.changes import (
    Retention,
    WriteRequest,
    build,
    remove,
    restore,
    run_cleanup,
    undrop,
)
from tests.support.committed import check, resolve
from tests.support.dataset_builder import (
    DbtNode,
    airlines_builder,
    build_nyc,
    build_table,
    flights,
    flights_builder,
    weather,
    weather_builder,
    write_plain_nyc,
)
from tests.support.documents import list_documents, load_document
from tests.support.stores import keys
from tests.support.tiny_bounds import tiny_indices

SEED = WriteRequest(
    "seed", cube="c", role="seed", dimension_columns=("L",), partition_by=("P",), indexes=("L", "v")
)
PLAIN = LogScope("dataset", "plain")


def test_a_table_has_none_after_it_was_asked_for(store):
    build_table(store)
    assert list_documents(store) == ["plain"]
    assert publish_documents(store, "plain", wanted=False) == ""
    assert list_documents(store) == []
    assert not check(store, "plain").problems
    version = resolve(store, PLAIN).version
    assert publish_documents(store, "plain", wanted=False) == ""
    assert resolve(store, PLAIN).version == version
    DbtNode(store, "plain").commit_append(pa.table({"a": [4]}))
    assert list_documents(store) == []
    assert resolve(store, PLAIN).snapshot("plain").rows == 4
    assert not resolve(store, PLAIN).datasets["plain"].problem
    publish_documents(store, "plain", wanted=True)
    assert list_documents(store) == ["plain"]
    assert len(load_document(store, "plain").partitions) == 2
    assert not check(store, "plain").problems


def test_of_a_cube_the_seed_dataset_decides(store):
    build_nyc(store)
    names = [f"nyc++{name}" for name in ("airlines", "flights", "weather")]
    assert sorted(list_documents(store)) == names
    store.calls.clear()
    publish_documents(store, "nyc", wanted=False)
    gone = [key for verb, key in store.calls if verb == "delete" and "by-dataset" in key]
    assert "flights" in gone[0], "a seed dataset without its enrichments would be a wrong answer"
    assert list_documents(store) == []
    weather_builder(store).commit_append(weather())
    airlines_builder(store)
    assert list_documents(store) == []
    assert not check(store, "nyc").problems
    flights_builder(store).commit_rebuild(flights())
    publish_documents(store, "nyc", wanted=True)
    assert sorted(list_documents(store)) == names


def test_a_cube_without_a_seed_dataset_has_none_anyway(store):
    weather_builder(store).commit_rebuild(weather())
    with pytest.raises(PublishError, match="no seed dataset yet"):
        publish_documents(store, "nyc", wanted=False)


def test_it_stays_so(store, tmp_path):
    """Whatever is done to the dataset: rebuilt, set back, dropped and brought back."""
    store.root.mkdir(exist_ok=True)
    build_table(store)
    build_table(store, table=pa.table({"a": [7]}))
    publish_documents(store, "plain", wanted=False)
    restore(store, "plain", 1)
    assert resolve(store, PLAIN).snapshot("plain").rows == 3
    assert list_documents(store) == []
    remove(store, "plain")
    undrop(store, "plain")
    assert list_documents(store) == []
    table = Store(str(store.root)).write_table("plain", pa.table({"a": [1, 2]}), "overwrite")
    assert table.query().count() == 2
    assert list_documents(store) == []
    assert not check(store, "plain").problems


def test_a_document_that_a_slow_publisher_wrote_is_deleted_again(store):
    build_table(store)
    before = {key: store.get(key) for key in keys(store) if key.endswith("metadata.json")}
    publish_documents(store, "plain", wanted=False)
    for key, data in before.items():
        store.put(key, data)
    assert not resolve(store, PLAIN).datasets["plain"].problem
    DbtNode(store, "plain").commit_append(pa.table({"a": [4]}))
    assert list_documents(store) == []
    run_cleanup(store, PLAIN, Retention())
    assert resolve(store, PLAIN).snapshot("plain").rows == 4


def test_an_index_that_is_too_large_is_left_out(store, monkeypatch):
    """Kartothek reads right without it; a dimension is said to have none."""
    monkeypatch.setattr(published_indices, "PUBLISHED_PAIRS", 2)
    with tiny_indices():
        rows = pa.table({"L": [1, 2, 3, 4], "P": ["a", "a", "b", "b"], "v": [1, 1, 1, 1]})
        build(store, rows, SEED)
        document = load_document(store, "c++seed")
        assert dict(document.indices).keys() == {"v"}
        assert document.metadata["ktk_cube_suppress_index_on"] == ["L"]
        assert resolve(store, LogScope("cube", "c")).snapshot("c++seed").with_index
        found = Store(str(store.root)).cube("c").query(where="L = 3")
        assert found.to_arrow()["v"].to_pylist() == [1]
        assert not check(store, "c").problems


def test_a_document_that_was_taken_over_goes_as_well(store):
    """Kartothek wrote it, the commit that stops documents adopts it."""
    write_plain_nyc(store)
    assert sorted(list_documents(store))
    publish_documents(store, "nyc", wanted=False)
    assert list_documents(store) == []
    assert not check(store, "nyc").problems
