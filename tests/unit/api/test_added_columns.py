"""Columns that are added to a cube: null without a file where Kartothek sees no documents."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store

CELLS = {"P": [1, 1, 2, 2], "L": [1, 2, 3, 4]}


@pytest.fixture
def cube(tmp_path):
    """`x` and `y` are added: to an enrichment, and to the seed dataset."""
    enrichment = pa.table({**CELLS, "v": [0.5, 1.5, 2.5, 3.5]})
    built = Store(tmp_path).build(
        "k",
        {"s": pa.table(CELLS), "e": enrichment},
        seed="s",
        dimension_columns=["L"],
        partition_by=["P"],
    )
    built = built.publish(kartothek=False)
    before = data_files(tmp_path)
    added = built.alter("e", add={"x": "double"}).alter("s", add={"y": "string"})
    assert data_files(tmp_path) == before, "a column is added without a file"
    return added


def data_files(folder):
    return sorted(path for path in folder.rglob("*.parquet") if "table" in path.parts)


def rows(cube, *question, **options):
    return cube.query(*question, **options).to_arrow(engine="local").to_pylist()


def test_it_is_null_in_all_rows(cube):
    assert rows(cube) == [
        {"P": p, "L": cell, "y": None, "v": cell - 0.5, "x": None}
        for p, cell in zip(CELLS["P"], CELLS["L"], strict=True)
    ]
    assert cube.query(["x"], "x is null and y is null").count() == 4
    assert rows(cube, ["x"], "x > 0") == rows(cube, ["y"], "y = 'a'") == []
    assert cube.query(["x", "y"], types="stored").to_arrow().schema.types == [
        pa.float64(),
        pa.string(),
    ]


@pytest.mark.parametrize("sql", ["float", "tinyint", "date", "decimal(5,1)", "array<float>"])
def test_its_type_is_that_of_a_column_that_was_written(cube, tmp_path, sql):
    without = cube.alter("e", add={"z": sql}).query(["z"]).to_arrow().schema
    written = cube.at().alter("e", drop=["z"]).publish(kartothek=True).alter("e", add={"z": sql})
    assert without == written.query(["z"]).to_arrow().schema


def test_documents_that_come_later_are_of_files_with_all_columns(cube, tmp_path):
    cell = pa.table({"P": [1], "L": [2], "v": [9.0], "x": [7.0]})
    cube = cube.update({"e": cell}, "L = 2")
    new = pa.table({"P": [3], "L": [5], "y": ["a"]})
    cube = cube.append({"s": new})
    expected = rows(cube)
    assert [(row["L"], row["x"], row["y"]) for row in expected] == [
        (1, None, None),
        (2, 7.0, None),
        (3, None, None),
        (4, None, None),
        (5, None, "a"),
    ]
    assert rows(cube, ["L"], "x = 7") == [{"L": 2}]
    before = set(data_files(tmp_path))
    version = cube.version
    cube = cube.publish(kartothek=True)
    assert rows(cube) == expected
    written = set(data_files(tmp_path)) - before
    assert written
    assert {"x", "y"} == {
        name for path in written for name in pq.read_schema(path).names if name in "xy"
    }
    assert cube.version == version + 1, "files and documents are one commit"
    after = data_files(tmp_path)
    cube.publish(kartothek=False).publish(kartothek=True)
    assert data_files(tmp_path) == after, "files with all columns stay"


def test_where_documents_are_published_it_is_written(cube, tmp_path):
    cube = cube.publish(kartothek=True)
    before = data_files(tmp_path)
    cube = cube.alter("e", add={"z": "bigint"})
    assert len(data_files(tmp_path)) == len(before) + 2
    assert [row["z"] for row in rows(cube)] == [None] * 4
