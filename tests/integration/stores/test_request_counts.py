"""How many requests an operation makes of an object store: docs/stores.md names these numbers."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.catalog.catalog import Relation  # deep: as the adapter drops
from ktk_engine.store.warehouse import Warehouse
from tests.servers.fault_proxy import FaultProxy
from tests.support.changes import Relations, WriteRequest, build
from tests.support.committed import cube_scope, describe, resolve, snapshot_of
from tests.support.documents import Comments

ROWS = 10_000
SEED = WriteRequest("s", "seed", "c", ("id",), ("p",), indexes=("half",))
EXTRA = WriteRequest("e", "enrichment", "c", ("id",))


@pytest.fixture(scope="module")
def proxy(s3_server):
    with FaultProxy(s3_server.endpoint) as running:
        yield running


@pytest.fixture(scope="module")
def store(s3_server, proxy):
    """A cube of two datasets with five data files."""
    store = proxy.behind(s3_server)
    build(store, seed_rows(range(ROWS)), SEED)
    build(store, pa.table({"id": range(ROWS), "v": range(ROWS)}), EXTRA)
    return store


def seed_rows(ids):
    return pa.table(
        {"p": [str(n % 4) for n in ids], "id": list(ids), "half": [n // 2 for n in ids]}
    )


@pytest.fixture
def counted(proxy):
    def counted(action):
        proxy.requests.clear()
        result = action()
        return result, Counter(method for method, _, _ in proxy.requests)

    return counted


def test_reading(store, counted):
    # One listing of documents, the beginning of each, one listing of the log, one entry.
    _, requests = counted(lambda: resolve(store, cube_scope("c")))
    assert requests == {"GET": 5}
    # The same, two listings for its name, and a snapshot for each dataset.
    cube, requests = counted(lambda: Store.of(store).cube("c"))
    assert requests == {"GET": 9}
    # The footer of the index, and the row groups that hold the value.
    query, requests = counted(lambda: cube.query(["id", "v"], "half = 20"))
    assert requests == {"GET": 2}
    # Footer and columns of the two partitions with such rows, and of the file next to them, where
    # the payload is read last.
    rows, requests = counted(lambda: query.to_arrow(engine="local"))
    assert rows.num_rows == 2
    assert requests == {"GET": 7}
    _, requests = counted(lambda: cube.query(["id"]).to_arrow(engine="local"))
    assert requests == {"GET": 8}  # no file of the other dataset
    # One more for which version Kartothek's document shows.
    _, requests = counted(lambda: describe(store, "c"))
    assert requests == {"GET": 12}


def test_commits(store, counted):
    # Asked for first: what is there (5), snapshots (2); published after: the document and the
    # schema (2), for what is there the commit knows. The document before the write and the log
    # before the entry (2).
    rows = pa.table({"id": range(ROWS), "v": range(1, ROWS + 1)})
    _, requests = counted(lambda: build(store, rows, EXTRA))
    # Put: the note of the writer, one data file, the snapshot, the entry and the document; the
    # schema says the same.
    assert requests == {"GET": 11, "PUT": 5, "HEAD": 1, "POST": 1}
    # Four data files, and two indexes that are read and written.
    rows = seed_rows(range(ROWS, ROWS + 4))
    _, requests = counted(lambda: build(store, rows, SEED, mode="append"))
    assert requests == {"GET": 13, "PUT": 10, "HEAD": 1, "POST": 1}


def test_a_relation_that_was_just_built_is_not_looked_for(s3_server, proxy, counted):
    """`persist_docs` after every model: the state of the table, and its snapshot."""
    options = {**s3_server.options, "endpoint": proxy.endpoint}
    relations = Relations(Warehouse(s3_server.new_url(), options))
    build(relations.warehouse.create_schema("an"), pa.table({"id": [1]}), WriteRequest("t"))
    built = Relation("t", "dataset", "t")
    comment_on = partial(relations.comment_on, "an", "t", Comments(), {})
    _, requests = counted(lambda: comment_on(built))
    assert requests == {"GET": 5}
    _, requests = counted(comment_on)  # the four listings by which a name is found
    assert requests == {"GET": 9}


def test_nothing_is_listed_but_documents_and_the_log(store, proxy, counted):
    counted(lambda: Store.of(store).cube("c").query(["id", "v"]).to_arrow(engine="local"))
    listed = [path for method, path, _ in proxy.requests if "list-type=2" in path]
    assert len(listed) == 4
    assert not [path for path in listed if "table" in path or "snapshots" in path]


def test_columns_are_fetched_in_few_large_ranges(s3_server, proxy, counted):
    """Ten columns, four row groups: two neighbours of each are one request."""
    store = proxy.behind(s3_server)
    names = [f"c{number}" for number in range(10)]
    rows = pa.table({name: range(40_000) for name in names})
    target = WriteRequest("t", row_group_rows=10_000)
    build(store, rows, target)
    from ktk_engine.snapshot.snapshot import digests_of  # deep: counts reads
    from tests.support.queries import read_data_file

    files = snapshot_of(store, "t").files
    key, (digest,) = files["key"][0].as_py(), digests_of(files)
    table, requests = counted(lambda: read_data_file(store, key, digest, ["c3", "c4"]))
    assert table.num_rows == 40_000
    # The footer; and the chunks, which lie within a megabyte of each other.
    assert requests == {"GET": 2}
