"""The first rows of a query: which files are opened for them, and that they are the right ones."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from ktk_engine.errors import LocalEngineError, QueryError
from ktk_engine.local.join_run import MemoryBudget
from tests.support.changes import WriteRequest, build
from tests.support.dataset_builder import write_plain
from tests.support.queries import read_row_groups

DAYS, IDS = 200, 50


@pytest.fixture
def opened(monkeypatch):
    """Keys of the data files of which rows are read."""
    keys = set()

    def spy(store, key, *arguments, **options):
        keys.add(key)
        return read_row_groups(store, key, *arguments, **options)

    monkeypatch.setattr("ktk_engine.local.read.stored_rows.read_row_groups", spy)
    return keys


def many_days(store):
    """A cube of 200 partitions, all of the same ids, and an enrichment beside."""
    n = range(DAYS * IDS)
    rows = pa.table({"day": [i // IDS for i in n], "id": [i % IDS for i in n], "v": [*n]})
    build(store, rows, WriteRequest("seed", "seed", "c", ("id",), ("day",)))
    more = rows.select(["day", "id"]).append_column("w", pa.array([-i for i in n]))
    build(store, more, WriteRequest("more", "enrichment", "c", ("id",), ("day",)))
    return Store(store.root).cube("c")


def test_few_files_of_many_are_opened(store, opened):
    cube = many_days(store)
    assert cube.stats()["seed"].files == DAYS
    expected = cube.query().to_arrow(engine="local").slice(0, 3)
    opened.clear()
    found = cube.query(limit=3).to_arrow(engine="local", memory_limit="64MB")
    assert found.to_pylist() == expected.to_pylist()
    assert found["day"].to_pylist() == [0, 1, 2]  # sorted by id, then day
    assert len(opened) <= 8  # of 400
    opened.clear()
    assert cube.query(where="v >= 5000", limit=1).to_arrow()["day"].to_pylist() == [100]
    assert len(opened) <= 4


def test_a_cube_that_does_not_fit_into_memory_gives_its_first_rows(store):
    cube = many_days(store)
    with pytest.raises(LocalEngineError, match="more than the limit"):
        cube.query().to_arrow(engine="local", memory_limit=200_000)
    few = cube.query(limit=3).to_arrow(engine="local", memory_limit=200_000)
    assert few.num_rows == 3
    with pytest.raises(LocalEngineError, match="more than the limit"):  # nor do so many rows
        cube.query(limit=9_999).to_arrow(engine="local", memory_limit=200_000)


def test_appended_files_of_one_partition(store, opened):
    """Each may hold a cell of another: those whose cells lie further on are not opened."""
    for start in range(0, 1000, 10):
        rows = pa.table({"id": range(start, start + 10), "v": [start] * 10})
        if start == 0:
            Store(store.root).build("c", rows, dimension_columns=["id"])
        else:
            Store(store.root).cube("c").append({"seed": rows})
    cube = Store(store.root).cube("c")
    assert cube.stats()["seed"].files == 100
    assert cube.query(limit=3).to_arrow()["id"].to_pylist() == [0, 1, 2]
    assert len(opened) <= 65
    opened.clear()
    assert cube.query(["v", "id"], "id > 985", limit=2).to_arrow().to_pylist() == [
        {"v": 980, "id": 986},
        {"v": 980, "id": 987},
    ]
    assert len(opened) <= 2


def test_without_partitions(store):
    """Two dimensions: the smallest values of a file need not be those of one cell."""
    left = pa.table({"a": [1, 1, 2], "b": [9, 8, 0], "v": [1, 2, 3]})
    right = pa.table({"a": [1, 3], "b": [7, 0], "v": [4, 5]})
    made = Store(store.root)
    made.build("c", left, dimension_columns=["a", "b"])
    made.cube("c").append({"seed": right})
    names = pa.table({"a": [1, 3], "name": ["one", "three"]})
    made.cube("c").extend({"names": names})
    cube = made.cube("c")
    for limit in range(7):
        whole = cube.query().to_arrow(engine="local")
        assert cube.query(limit=limit).to_arrow().to_pylist() == whole.to_pylist()[:limit]
    assert cube.query(limit=1).to_arrow().to_pylist() == [{"a": 1, "b": 7, "v": 4, "name": "one"}]
    assert cube.query(where="name = 'three'", limit=2).to_arrow()["b"].to_pylist() == [0]


def test_a_table(store, opened):
    build(
        store,
        pa.table({"p": [*range(100)], "n": [*range(100)]}),
        WriteRequest("t", partition_by=("p",)),
    )
    table = Store(store.root).table("t")
    assert table.query(limit=3).to_arrow().num_rows == 3
    assert len(opened) <= 8
    assert len(table.head()) == 5
    assert table.query(["n"], "n = 77", limit=3).to_arrow()["n"].to_pylist() == [77]


def test_all_forms_know_the_limit(store):
    query = many_days(store).query(["id", "day"], limit=4)
    assert query.count() == 4
    assert sum(batch.num_rows for batch in query.to_batches()) == 4
    assert pa.table(query).num_rows == 4
    assert len(query.to_pandas()) == 4
    assert "the first 4 rows" in query.explain()
    assert "the first 4 rows" in query._repr_html_()
    empty = many_days(store).query(limit=0).to_arrow()
    assert (empty.num_rows, empty.column_names) == (0, ["id", "day", "v", "w"])


@pytest.mark.parametrize("limit", [-1, True, 1.5, "3"])
def test_limits_that_are_none(store, limit):
    cube = many_days(store)
    with pytest.raises(QueryError, match="limit must be a number of rows"):
        cube.query(limit=limit)


def test_groups_have_no_limit(store):
    cube = many_days(store)
    with pytest.raises(QueryError, match="a limit or groups"):
        cube.query(partition_by=["id"], limit=1)


COUNT, LETTERS = 300_000, 20_000


def as_kartothek_left_it(store, kind):
    """Let a file of some kB hold one long value in 300,000 rows: 6 GB, were all of them decoded."""
    few = pa.table({"id": [0, 1], "note": ["a", "b"]})
    if kind == "table":
        write_plain(store, "t", few)
    else:
        datasets = {"seed": few} if kind == "cube" else {"seed": few.select(["id"]), "more": few}
        Store.of(store).build("t", datasets, dimension_columns=["id"])
        shutil.rmtree(store.root / ".ktk")  # so that digests of files are unknown
        for path in store.root.glob("*.json"):
            document = json.loads(path.read_bytes())
            del document["ktk_commit"], document["metadata"]["ktk_base"]
            path.write_text(json.dumps(document))
    index = pa.array([0] * COUNT, pa.int32())
    note = pa.DictionaryArray.from_arrays(index, ["x" * LETTERS])
    rows = pa.table({"id": pa.array(range(COUNT), pa.int64()), "note": note})
    for path in store.root.rglob("*.parquet"):
        if "indices" not in path.parts:
            names = [name for name in rows.column_names if name in pq.read_schema(path).names]
            pq.write_table(rows.select(names), path, row_group_size=COUNT, store_schema=False)


@pytest.mark.parametrize("kind", ["table", "cube", "enriched"])
def test_work_follows_the_rows_that_are_shown(store, kind, monkeypatch):
    as_kartothek_left_it(store, kind)
    decoded, take = [], MemoryBudget.take
    monkeypatch.setattr(MemoryBudget, "take", lambda own, n: (decoded.append(n), take(own, n))[1])
    found = Store.of(store).relation("t").query(limit=2).to_arrow(engine="local")
    assert found["id"].to_pylist() == [0, 1]
    assert set(found["note"].to_pylist()) == {"x" * LETTERS}
    assert sum(decoded) < 500_000_000
