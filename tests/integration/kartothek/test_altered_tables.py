"""Kartothek 5.3.0 reads what `alter table` left."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest

from tests.support.changes import WriteRequest, alter_table, build
from tests.support.dataset_builder import build_overlaid
from tests.support.kartothek import kartothek, needs_kartothek

pytestmark = needs_kartothek


@pytest.fixture
def run(store):
    return partial(alter_table, store)


@pytest.fixture
def cube(store):
    return build_overlaid(store)


READ_TABLE = """
frame = read_table(dataset_uuid="t", store=store, table="table")
frame = frame.sort_values("a").reset_index(drop=True)
print(json.dumps([sorted(frame.columns), json.loads(frame.to_json(orient="records"))]))
"""


READ_CUBE = """
cube, _ = discover_cube("c", store)
frame = pd.concat(query_cube(cube, store)).sort_values(["p", "x"])
print(json.dumps([sorted(frame.columns), json.loads(frame.to_json(orient="records"))]))
"""


def test_kartothek_sees_the_new_columns_only(store, run):
    data = pa.table({"a": [1, 2], "old": ["x", "y"], "gone": [1.5, 2.5]})
    build(store, data, WriteRequest("t"))
    build(
        store,
        pa.table({"a": [3], "old": ["z"], "gone": [3.5]}),
        WriteRequest("t"),
        mode="append",
    )
    run("alter table s.t rename column old to new")
    run("alter table s.t drop column gone")
    run("alter table s.t set tblproperties (owner = 'ops')")
    names, found = kartothek(store, READ_TABLE)
    assert names == ["a", "new"]
    assert [row["new"] for row in found] == ["x", "y", "z"]
    run("alter table s.t add column gone double")
    names, found = kartothek(store, READ_TABLE)
    assert all(row.get("gone") is None for row in found)


def test_kartothek_reads_a_cube_with_other_payload(cube, store):
    cube.alter("cells", add={"new": "double"}, rename={"v": "value"})
    names, found = kartothek(store, READ_CUBE)
    assert names == ["i", "new", "p", "value", "w", "x"]
    assert [row["value"] for row in found] == [1.0, 20.0, 3.0]
    assert [row["new"] for row in found] == [None] * 3
    cube.at().alter("cells", drop=["new"])
    assert "new" not in kartothek(store, READ_CUBE)[0]


def test_kartothek_reads_columns_that_were_added_without_documents(cube, store):
    before = kartothek(store, READ_CUBE)[1]
    cube.publish(kartothek=False)
    cube.at().alter("cells", add={"new": "double"})
    cube.at().publish(kartothek=True)
    names, found = kartothek(store, READ_CUBE)
    assert "new" in names
    assert found == [{**row, "new": None} for row in before]
