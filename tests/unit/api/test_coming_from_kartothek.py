"""Lines of docs/kartothek.md that no other test is about."""

from __future__ import annotations

import os

import pandas as pd
import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import ConfigurationError, DatasetNotFoundError, KtkError

ROWS = pa.table({"p": ["a", "a", "b"], "x": [1, 2, 3], "v": [1.5, None, -2.0]})
MORE = pa.table({"x": [1, 2], "w": ["é", ""]})


@pytest.fixture
def opened(store):
    return Store(store.root)


@pytest.fixture
def cube(opened):
    return opened.build(
        "c", {"seed": ROWS, "more": MORE}, dimension_columns=["x"], partition_by=["p"],
        indexes=["w"],
    )  # fmt: skip


def rows(asked):
    return asked.to_arrow(engine="local").to_pylist()


def test_columns_of_a_cube(cube):
    known = cube.specification
    shared = {*known.dimension_columns, *known.partition_columns}
    assert set(cube.schema.names) - shared == {"v", "w"}


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("x = 1", [1]),
        ("x != 1", [2, 3]),
        ("x < 2", [1]),
        ("x <= 2", [1, 2]),
        ("x > 2", [3]),
        ("x >= 2", [2, 3]),
        ("x in (1, 3)", [1, 3]),
        ("x >= 1 and x < 3", [1, 2]),
        ("v < 0 and p = 'b'", [3]),
    ],
)
def test_conditions_mean_what_kartotheks_do(cube, where, found):
    assert [row["x"] for row in rows(cube.query(where=where))] == found


def test_arguments_of_a_query(cube):
    asked = cube.query(payload_columns=["v"], dimension_columns=["x"], where="x < 3")
    assert asked.to_arrow(engine="local").column_names == ["p", "v", "x"]
    assert asked.to_pandas(engine="local")["v"].tolist()[0] == 1.5
    assert "w" not in cube.query(datasets=["seed"]).to_arrow(engine="local").column_names
    groups = list(cube.query(partition_by=["p"]).iter_groups(engine="local"))
    assert [(values, found.num_rows) for values, found in groups] == [
        ({"p": "a"}, 2),
        ({"p": "b"}, 1),
    ]
    with pytest.raises(KtkError, match="sed"):
        cube.query(datasets=["sed"])


def test_a_table_is_stored_and_updated(opened):
    opened.write_table("t", ROWS.to_pandas(), "overwrite")
    assert opened.write_table("t", ROWS).rows == 6
    assert opened.write_table("t", ROWS.slice(1), "overwrite").rows == 2
    new = pa.table({"p": ["a", "c"], "x": [2, 9], "v": [0.5, None]})
    changed = opened.write_table("t", new, "merge", key=["x"])
    assert sorted((row["x"], row["p"]) for row in rows(changed.query())) == [
        (2, "a"), (3, "b"), (9, "c")
    ]  # fmt: skip


def test_parts_are_one_commit(opened):
    parts = (ROWS.slice(number, 1).to_pandas() for number in range(3))
    table = opened.write_table("t", parts)
    assert (table.version, table.rows) == (1, 3)
    assert opened.write_table("t", [ROWS, ROWS]).rows == 9


def test_arguments_of_a_table(opened):
    layout = {"partition_by": ["p"], "indexes": ["x"], "clustered_by": ["v"]}
    noted = {"mine": {"a": [1, None]}}
    table = opened.write_table("t", ROWS, metadata=noted, **layout)
    assert noted == {"mine": {"a": [1, None]}}
    for again in (table, opened.write_table("t", ROWS)):
        (info,) = again.info()["datasets"]
        assert (info["partition_keys"], info["indexes"]) == (("p",), ("x",))
        snapshot = again._loaded.snapshot
        assert snapshot.metadata["mine"] == {"a": [1, None]} and snapshot.clustered_by == ("v",)
    with pytest.raises(ConfigurationError):
        opened.write_table("t", ROWS, indexes=["nothing"])


def test_rows_of_a_table_are_deleted(opened):
    table = opened.write_table("t", ROWS, partition_by=["p"])
    assert table.delete("p = 'a' and x = 1").rows == 2
    with pytest.raises(KtkError, match="typo"):
        opened.table("t").delete("typo = 1")
    assert opened.table("t").rows == 2


def test_a_table_describes_itself(opened):
    table = opened.write_table("t", ROWS, partition_by=["p"])
    stats = table.stats()
    assert (stats.rows, stats.files, stats.partitions) == (3, 2, 2) and stats.bytes > 0
    assert table.schema.names == ["p", "x", "v"] and table.info()["datasets"][0]["rows"] == 3


def test_a_table_is_cleaned(opened, store):
    opened.write_table("t", ROWS)
    (old,) = store.root.glob("t/table/*.parquet")
    left = old.with_name("left.parquet")
    left.write_bytes(old.read_bytes())
    os.utime(left, (0, 0))
    assert [info.key for info in opened.cleanup("t").objects] == ["t/table/left.parquet"]
    opened.cleanup("t", delete=True)
    assert not left.exists() and opened.table("t").rows == 3
    with pytest.raises(DatasetNotFoundError):
        opened.cleanup("other")


def test_frames_of_pandas_keep_their_names(opened):
    frame = pd.DataFrame({"x": [1], "größe": ["a"]})
    assert opened.write_table("t", frame).schema.names == ["x", "größe"]
