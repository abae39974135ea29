"""Plain tables from Python: rows, conditions, versions; no Java."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import DatasetNotFoundError, QueryError, VersionGoneError
from tests.support.changes import WriteRequest, build
from tests.support.dataset_builder import build_nyc

ROWS = pa.table(
    {"P": ["a/b", "a/b", "é", "%"], "n": [3, 1, None, 2], "t": ["x", "", None, "'"]},
    pa.schema([("P", pa.string()), ("n", pa.int64()), ("t", pa.string())]),
)


@pytest.fixture
def opened(store):
    build(store, ROWS, WriteRequest("t", partition_by=("P",), indexes=("n",)))
    build_nyc(store)
    return Store(store.root)


def test_rows_and_columns(opened):
    assert (opened.tables(), opened.cubes()) == (["t"], ["nyc"])
    table = opened.table("t")
    assert repr(table) == "Table('t', version=1)"
    assert (table.rows, table.schema.names) == (4, ["P", "n", "t"])
    found = table.query().to_arrow(engine="local")
    assert found.sort_by("P").to_pylist() == ROWS.sort_by("P").to_pylist()
    assert table.query(["t", "P"]).to_arrow(engine="local").column_names == ["t", "P"]
    assert table.query(["P"]).count() == 4
    assert pa.table(table.query(["n"], "n = 1")).to_pydict() == {"n": [1]}


@pytest.mark.parametrize(
    ("where", "expected", "files"),
    [
        ("P = 'a/b'", [1, 3], 1),
        ("n = 2", [2], 1),
        ("n >= 2", [2, 3], 2),
        ("t is null", [None], 1),
        ("t = ''", [1], 1),
        ("n = 2 or P = 'é'", [None, 2], 3),
        ("n > 5", [], 0),
    ],
)
def test_conditions_prune_and_hold(opened, where, expected, files):
    query = opened.table("t").query(["n"], where)
    found = query.to_arrow(engine="local")["n"].to_pylist()
    assert sorted(found, key=lambda n: (n is not None, n)) == expected
    assert query.plan.datasets[0].files.num_rows == files
    assert query.count() == len(expected)
    assert query.explain().startswith("table t, version 1: 1 column")


def test_versions(opened, store):
    target = WriteRequest("t", partition_by=("P",), indexes=("n",))
    build(store, ROWS.slice(0, 1), target, mode="append")
    table = opened.table("t")
    assert (table.rows, table.at(version=1).rows) == (5, 4)
    assert table.restore(1).version == 3
    assert opened.table("t").query().count() == 4
    with pytest.raises(VersionGoneError, match="no version 9"):
        table.at(version=9)


def test_what_is_no_table_or_column_is_said(opened):
    with pytest.raises(DatasetNotFoundError, match="is a cube"):
        opened.table("nyc")
    with pytest.raises(DatasetNotFoundError, match="has no cube or table q"):
        opened.table("q")
    with pytest.raises(QueryError, match="Table t has no column `m`"):
        opened.table("t").query(["m"])
    with pytest.raises(QueryError, match="partition_by"):
        opened.table("t").query().iter_groups()
    assert opened.relation("nyc").name == "nyc"
    assert opened.relation("t").name == "t"


def test_a_compaction_tells_how_far_it_is(store):
    told = []
    for mode in (None, "append"):
        build(store, ROWS, WriteRequest("t", partition_by=("P",)), mode)
    table = Store(store.root).table("t").compact(progress=lambda *both: told.append(both))
    assert table.rows == 8
    done = [rows for rows, _ in told]
    assert done == sorted(done) and told[-1] == (8, 8) and {total for _, total in told} == {8}
    told.clear()
    table.compact(progress=lambda *both: told.append(both))
    assert told == []  # there was nothing to do
