"""Partition columns whose names and values are odd are right in every way of reading."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from ktk_engine.spark.sql.read_files import read_files
from tests.spark.small_cube import add_view
from tests.support.changes import WriteRequest, build
from tests.support.documents import ViewDocument
from tests.support.kartothek import ORACLE, needs_kartothek
from tests.support.queries import FileAddress, quote_identifier

NAMES = ["größe", "p", "名前", "a b", "x=y", "50%", "ŁÓDŹ", "a+b", "q?#", "e\u0301", "😀", "A.b"]
VALUES = ["ü", "a", "%C3%BC", "x=y", "a b", "50%", "日本", "a+b", "é", "e\u0301", "😀", "a/b", "Ã¼"]


def rows(sql, text: str) -> list[tuple]:
    return sorted(tuple(row) for row in sql.sql(text).collect())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("in_cube", [True, False])
def test_our_stores(sql, store, name, in_cube):
    table = pa.table({name: VALUES, "id": range(len(VALUES)), "v": [1.5] * len(VALUES)})
    if in_cube:
        build(store, table, WriteRequest("seed", "seed", "c", ("id",), (name,)))
        add_view(store, ViewDocument("t", "cube", cube="c"))
        opened, dataset = Store(store.url).cube("c"), "an.`c++seed`"
    else:
        build(store, table, WriteRequest("t", partition_by=(name,)))
        opened, dataset = Store(store.url).table("t"), "an.t"
    expected = sorted(zip(VALUES, range(len(VALUES)), strict=True))
    column = quote_identifier(name)
    for relation in ("an.t", dataset):
        assert rows(sql, f"select {column}, id from {relation}") == expected
        assert rows(sql, f"select {column}, id from {relation} where {column} = 'ü'") == [("ü", 0)]
        upper = quote_identifier(name.upper()) if name.upper().lower() == name.lower() else column
        assert rows(sql, f"select {upper}, count(*) from {relation} group by 1") == sorted(
            (value, 1) for value in VALUES
        )
    query = opened.query([name, "id"])
    for found in (query.to_arrow(), pa.Table.from_batches(query.to_batches())):
        assert sorted(zip(*found.to_pydict().values(), strict=True)) == expected
    assert sorted(map(tuple, query.to_spark(sql.session).collect())) == expected
    assert opened.query(["id"], f"{column} = '日本'").to_arrow()["id"].to_pylist() == [6]


@needs_kartothek
def test_stores_of_kartothek(sql, store):
    names = [name for name in NAMES if name not in ("q?#", "A.b")]
    store.root.mkdir()
    script = Path(__file__).with_name("write_folders_with_kartothek.py")
    arguments = [str(store.root), json.dumps(names), json.dumps(VALUES)]
    subprocess.run([ORACLE, str(script), *arguments], check=True, capture_output=True)
    expected = sorted(zip(VALUES, range(len(VALUES)), strict=True))
    for number, name in enumerate(names):
        add_view(store, ViewDocument(f"v{number}", "cube", cube=f"c{number}"))
        column = quote_identifier(name)
        for relation in (f"an.t{number}", f"an.v{number}", f"an.`c{number}++seed`"):
            assert rows(sql, f"select {column}, id from {relation}") == expected
            found = rows(sql, f"select id from {relation} where {column} = 'ü'")
            assert found == [(VALUES.index("ü"),)]
        for opened in (Store(store.url).table(f"t{number}"), Store(store.url).cube(f"c{number}")):
            found = opened.query([name, "id"]).to_arrow().to_pydict()
            assert sorted(zip(*found.values(), strict=True)) == expected


def write_folders(root, name: str, values: list[str], quote) -> None:
    for number, value in enumerate(values):
        folder = root / f"{quote(name)}={quote(value)}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), folder / "a.parquet")


def read(spark, location, format_: str = "parquet"):
    return read_files(spark, FileAddress(str(location), format_), "s.t")


PERCENT = [value for value in VALUES if value != "/"]


@pytest.mark.parametrize("name", [name for name in NAMES if "?" not in name])
def test_plain_files_of_programs_that_encode(spark, tmp_path, name):
    """As pyarrow, Kartothek and DuckDB write folders: each byte of UTF-8 that is not a letter."""
    write_folders(tmp_path, name, PERCENT, lambda text: urllib.parse.quote(text, safe=""))
    found = read(spark, tmp_path)
    assert set(found.columns) == {"id", name}
    expected = dict(enumerate(PERCENT))
    assert {row["id"]: row[name] for row in found.collect()} == expected
    partitioning = ds.partitioning(pa.schema([(name, pa.string())]), flavor="hive")
    seen = ds.dataset(tmp_path, partitioning=partitioning).to_table().to_pylist()
    assert {row["id"]: row[name] for row in seen} == expected


@pytest.mark.parametrize("name", ["größe", "p", "a b", "😀"])
def test_plain_files_of_spark(spark, tmp_path, name):
    values = [*VALUES, None]
    frame = spark.createDataFrame(
        list(enumerate(values)), f"id int, {quote_identifier(name)} string"
    )
    frame.write.partitionBy(name).parquet(str(tmp_path / "t"))
    found = read(spark, tmp_path / "t")
    assert {row["id"]: row[name] for row in found.collect()} == dict(enumerate(values))


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_other_formats_and_several_columns(spark, tmp_path, format_):
    text = {"csv": "id\n1\n", "json": '{"id": 1}\n'}[format_]
    folder = tmp_path / "gr%C3%B6%C3%9Fe=%C3%BC%20+1" / "p=raw%" / "q=__HIVE_DEFAULT_PARTITION__"
    folder.mkdir(parents=True)
    (folder / f"a.{format_}").write_text(text)
    (row,) = read(spark, tmp_path, format_).collect()
    assert row.asDict() == {"id": 1, "größe": "ü +1", "p": "raw%", "q": None}
