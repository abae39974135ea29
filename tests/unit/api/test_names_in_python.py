"""What Python programs write: columns in any letter case, and the spelling that stays."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import (
    ConfigurationError,
    ConsistencyError,
    QueryError,
    TypeClassError,
    VersionGoneError,
)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def table(**columns) -> pa.Table:
    return pa.table(columns)


def names_in_files(store) -> set[str]:
    import pyarrow.parquet as pq

    root = store._store.root
    return {name for path in root.rglob("*.parquet") for name in pq.read_schema(path).names}


@pytest.mark.parametrize("as_reader", [True, False])
def test_a_table(store, as_reader):
    store.write_table(
        "t", table(Id=[1, 2], P=["x", "y"], v=[1, 2]), partition_by="p", indexes=["V"]
    )
    new = table(ID=[2], p=["y"], V=[20])
    store.write_table("t", new.to_reader() if as_reader else new, mode="append")
    store.write_table("t", table(iD=[1], p=["x"], V=[10]), mode="merge", key=["ID"])
    found = store.table("t")
    assert found.schema.names == ["Id", "P", "v"]
    rows = found.query(["Id", "v"], "id > 0 and P > 'a'").to_arrow().to_pylist()
    assert sorted(map(tuple, map(dict.values, rows))) == [(1, 10), (2, 2), (2, 20)]
    assert names_in_files(store) >= {"Id", "v"} and not names_in_files(store) & {"ID", "iD", "V"}
    store.table("t").repartition("ID")
    store.write_table("t", table(ID=[7], p=["q"]), mode="overwrite", indexes=[])
    assert store.table("t").schema.names == ["ID", "p"]


def test_a_cube(store):
    seed = table(Flight=[1, 2], Origin=["JFK", "EWR"], dest=["a", "b"])
    cube = store.build(
        "c", {"seed": seed, "more": table(FLIGHT=[1], gust=[3.0])},
        dimension_columns=["flight"], partition_by=["ORIGIN"], indexes=["DEST"],
    )  # fmt: skip
    assert cube.specification.dimension_columns == ("Flight",)
    assert cube.specification.partition_columns == ("Origin",)
    cube = cube.extend({"late": table(flight=[2], delay=[5])}, indexes=["DELAY"])
    cube = cube.append({"more": table(flight=[2], GUST=[4.0])})
    rows = cube.query(["Flight", "gust", "delay"]).to_arrow().to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, 3.0, None), (2, 4.0, 5)]
    assert not names_in_files(store) & {"FLIGHT", "flight", "GUST"}
    with pytest.raises(TypeClassError, match="payload column Gust is already owned by dataset"):
        cube.extend({"other": table(Flight=[1], Gust=[1.0])})
    with pytest.raises(ConsistencyError, match="the datasets more and"):
        cube.extend({"More": table(Flight=[1], w=[1.0])})
    with pytest.raises(ConfigurationError, match="Did you mean `gust2`"):
        cube.extend({"other": table(Flight=[1], gust2=[1.0])}, indexes=["gost"])


def test_a_second_table_is_refused(store):
    store.write_table("t", table(a=[1]))
    with pytest.raises(ConsistencyError, match="they differ only in letter case"):
        store.write_table("T", table(a=[99]))
    assert store.table("t").query().to_arrow()["a"].to_pylist() == [1]


@pytest.mark.parametrize(
    "type_",
    [
        pa.struct([("a", pa.int64()), ("A", pa.int64())]),
        pa.list_(pa.struct([("Maße", pa.int64()), ("maße", pa.int64())])),
        pa.map_(pa.string(), pa.struct([("x", pa.struct([("b", pa.null()), ("B", pa.null())]))])),
    ],
)
def test_fields_of_a_struct(store, type_):
    with pytest.raises(TypeClassError, match="in letter case only, which SQL ignores"):
        store.write_table("t", pa.table({"s": pa.nulls(1, type_)}))


def test_letters_that_are_not_the_same(store):
    store.write_table("t", pa.table({"Maße": [1], "Masse": [2], "é": [3], "e\u0301": [4]}))
    store.write_table(
        "t", pa.table({"maße": [5], "MASSE": [6], "É": [7], "E\u0301": [8]}), mode="append"
    )
    rows = store.table("t").query().to_arrow().to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, 2, 3, 4), (5, 6, 7, 8)]


def test_tags(store):
    store.write_table("t", table(a=[1]))
    store.table("t").tag("Release")
    store.write_table("t", table(a=[2]), mode="overwrite")
    assert store.table("t", version="RELEASE").query().to_arrow()["a"].to_pylist() == [1]
    with pytest.raises(ConsistencyError, match="Tag Release of t names version 1"):
        store.table("t").tag("release")
    with pytest.raises(VersionGoneError, match="Did you mean `Release`"):
        store.table("t", version="reales")
    store.table("t").untag("RELEASE")
    store.table("t").tag("release")
    assert store.table("t", version="Release").query().to_arrow()["a"].to_pylist() == [2]


def test_queries_ignore_letter_case(tmp_path):
    store = Store(str(tmp_path / "an"))
    store.write_table("t", pa.table({"Flight": [1, 2], "größe": [3, 4], "v": [5, 6]}))
    rows = store.table("t").query(["FLIGHT", "GRÖßE", "v"]).to_arrow()
    assert rows.column_names == ["Flight", "größe", "v"]
    with pytest.raises(QueryError, match="named twice: Flight"):
        store.table("t").query(["flight", "Flight"])
    with pytest.raises(QueryError, match="no column `flights`"):
        store.table("t").query(["flights"])
