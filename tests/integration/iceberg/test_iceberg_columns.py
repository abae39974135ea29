"""Columns that come, go and come back: the current rows, and what time travel still shows."""

import json
from datetime import date, datetime, time

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import PublishError
from ktk_engine.publish.iceberg import avro_schemas
from tests.integration.delta.readers import READERS as DELTA
from tests.integration.delta.readers import in_order
from tests.integration.iceberg.readers import READERS
from tests.integration.iceberg.stored_metadata import file_of, newest, specs_fit, time_travels
from tests.support.changes import Retention, WriteRequest, build, check_publishing, run_cleanup
from tests.support.committed import scope_of
from tests.support.published_table import published, url_of

ROWS = pa.table({"x": [1, 2], "s": ["a", "é"], "u": [{"v": 1, "w": "b"}, None]})


def synced(store, rows, mode="append"):
    """Write rows as an incremental run does that drops the columns they lack."""
    build(store, rows, WriteRequest("t", on_schema_change="sync_all_columns"), mode=mode)


def agree(store, *flat):
    """Check that readers see our rows, and at each snapshot those of our version.

    `flat` are columns that are compared; without them, all.
    """
    face, url = Store.of(store), url_of(store)
    names = list(flat) or None
    ours = in_order(face.table("t").query(names).to_arrow(engine="local"), names)
    for name, read in READERS.items():
        assert in_order(read(url), names) == ours, name
    seen = time_travels(store)
    assert [found.problem for found in check_publishing(store, "t")] == [""]
    specs_fit(store)
    return seen


def test_a_column_that_files_still_have_is_dropped(store):
    published(store, "iceberg", rows=ROWS)
    synced(store, pa.table({"x": [3], "u": [{"v": 2, "w": "c"}]}))
    assert agree(store, "x") == [2, 3]
    synced(store, pa.table({"x": [4]}))
    assert agree(store, "x") == [2, 3, 4]
    assert agree(store) == [2, 3, 4]


def test_a_column_that_only_files_have_had_for_long(store):
    """No kept schema names it any more."""
    face = published(store, "iceberg", rows=ROWS)
    synced(store, pa.table({"x": [3], "u": [{"v": 2, "w": "c"}]}))
    for value in range(4, 16):
        face.write_table("t", pa.table({"x": [value], "u": [{"v": 2, "w": "c"}]}))
    assert all(schema["fields"][1]["name"] == "u" for schema in newest(store).metadata["schemas"])
    assert len(agree(store, "x")) == 10
    face.table("t").publish(None)
    face.table("t").publish("iceberg")  # now no schema ever did
    assert len(agree(store, "x")) == 1
    face.write_table("t", pa.table({"x": [16], "u": [{"v": 2, "w": "c"}]}))
    assert len(agree(store, "x")) == 2


def test_a_column_that_comes_back_keeps_its_id_and_the_snapshots(store):
    face = published(store, "iceberg", rows=ROWS)
    before = {field["name"]: field["id"] for field in newest(store).schema["fields"]}
    synced(store, pa.table({"x": [3]}))
    face.table("t").restore(version=1)
    found = {field["name"]: field["id"] for field in newest(store).schema["fields"]}
    assert found == before
    assert agree(store, "x", "s") == [2, 3, 4]


def test_a_column_of_another_class_ends_the_snapshots_with_the_first(store):
    face = published(store, "iceberg", rows=pa.table({"x": [1], "c": [1]}))
    face.table("t").alter(drop=["c"])
    assert agree(store) == [2, 3]
    face.table("t").alter(add={"c": pa.string()})
    assert agree(store) == [3, 4]
    face.write_table("t", pa.table({"x": [2], "c": [{"d": 1}]}), "overwrite")
    assert agree(store, "x") == [3, 5]
    face.write_table("t", pa.table({"x": [2], "c": [{"d": "a"}]}), "overwrite")
    assert agree(store, "x") == [3, 6]  # of a field, another class, too


def test_columns_in_another_order_and_by_other_names(store):
    face = published(store, "iceberg", rows=ROWS)
    face.write_table("t", ROWS.select(["u", "s", "x"]), "overwrite")
    face.table("t").alter(rename={"x": "y"})
    face.table("t").alter(rename={"s": "z", "y": "x"})
    assert agree(store, "x", "z") == [2, 3, 4, 5]


@pytest.mark.parametrize("kept", [True, False])
def test_a_spec_goes_with_the_column_that_it_partitions_by(store, kept):
    rows = pa.table({"p": ["a", "b"], "q": [1, 2], "x": [1, 2]})
    face = published(store, "iceberg", rows=rows, partition_by=["p"])
    if kept:
        face.table("t").repartition("q")
    less = pa.table({"q": [3], "x": [3]})
    face.write_table("t", less, "overwrite", partition_by=["q"])
    assert agree(store) == ([3, 4] if kept else [3])
    more = less.append_column("p", pa.array(["c"]))
    face.write_table("t", more, "overwrite", partition_by=["p"])
    assert agree(store) == ([3, 4, 5] if kept else [3, 4])
    face.write_table("t", more)
    assert len(agree(store)) == (4 if kept else 3)


def test_a_spec_goes_when_a_column_gets_the_name_of_its_field(store):
    """Partition fields have names that Avro allows, which a later column may have."""
    face = published(store, "iceberg", rows=pa.table({"1": ["a"], "x": [1]}), partition_by=["1"])
    more = pa.table({"1": ["b"], "x": [2], "_1": [0.5]})
    face.write_table("t", more, "overwrite")
    assert agree(store) == [3]
    face.write_table("t", more)
    assert agree(store) == [3, 4]


MOMENT = datetime(2020, 2, 3, 4, 5, 6, 789012)
KEYS = {
    "s": (pa.string(), ["a/b", "ü"]),
    "b": (pa.bool_(), [True, False]),
    "i": (pa.int32(), [-1, 2]),
    "big": (pa.int64(), [-(2**63), 1]),
    "u1": (pa.uint64(), [0, 2**64 - 1]),
    "u2": (pa.uint64(), [2**63, 1]),
    "day": (pa.date32(), [date(1, 1, 1), date(2020, 2, 29)]),
    "at": (pa.timestamp("us"), [MOMENT, datetime(1969, 1, 1)]),
    "clock": (pa.time64("us"), [time(0), time(23, 59, 59, 999999)]),
    "bytes": (pa.binary(), [b"\xff\x00", b"a"]),
    "f1": (pa.binary(3), [b"\xff\x00a", b"abc"]),
    "f2": (pa.binary(3), [b"abc", b"abd"]),
    "1-": (pa.string(), ["x", "y"]),
    "_1-": (pa.string(), ["v", "w"]),
}
PAIRS = [("u1", "u2"), ("f1", "f2"), ("1-", "_1-"), tuple(KEYS)]


@pytest.mark.parametrize("keys", PAIRS, ids="+".join)
def test_several_partition_columns(store, keys):
    rows = pa.table({**{k: pa.array(KEYS[k][1], KEYS[k][0]) for k in keys}, "x": [1, 2]})
    face = published(store, "iceberg", rows=rows, partition_by=list(keys))
    face.write_table("t", rows.set_column(len(keys), "x", pa.array([3, 4])))
    face.table("t").delete("x = 1")
    assert agree(store) == [2, 3, 4]


def test_what_avro_cannot_hold_is_refused_before_anything_is_written(store, monkeypatch):
    face = Store.of(store)
    face.write_table("t", pa.table({"p": ["a"], "x": [1]}), partition_by=["p"])
    monkeypatch.setitem(avro_schemas._PLAIN, "string", "nosuch")
    with pytest.raises(PublishError, match=r"manifests cannot be .*nosuch.*Nothing was written"):
        face.table("t").publish("iceberg")
    assert (face.table("t").version, (store.root / "t" / "iceberg").exists()) == (1, False)


COLLISIONS = {
    "a field with a point": {"a": [{"b.c": 1, "b": {"c": 2}}]},
    "two fields of two columns": {"a.b": [{"c": 1}], "a": [{"b.c": 2}]},
    "a field of an element": {"a": [[{"b": 1}]], "a.element.b": [1]},
    "letter case of a path": {"A.b": [1], "a": [{"B": 2}]},
}


@pytest.mark.parametrize("name", COLLISIONS)
def test_names_that_make_the_same_path_are_refused(store, name):
    face = Store.of(store)
    face.write_table("t", pa.table(COLLISIONS[name]))
    with pytest.raises(
        PublishError, match=r"(?i)(column|field) .*: Iceberg confuses it with .*Rename"
    ):
        face.table("t").publish("iceberg")


def test_a_path_of_a_dropped_column_is_refused_while_files_have_it(store, caplog):
    face = published(store, "iceberg", rows=pa.table({"x": [1], "a.b": [1]}))
    synced(store, pa.table({"x": [2]}))
    face.table("t").alter(add={"z": pa.int64()})
    rows = pa.table({"x": [3], "z": [1], "a": [{"b": 1}]})
    build(store, rows, WriteRequest("t", on_schema_change="append_new_columns"), mode="append")
    assert "files still have column a.b, which was dropped" in caplog.text
    face.write_table("t", rows, "overwrite")
    assert agree(store, "x")[-1] == 6


def test_the_mapping_of_another_program_is_not_needed(store):
    face = published(store, "iceberg", rows=ROWS)
    synced(store, pa.table({"x": [3]}))
    wrong = ("[{", '{"a": 1}', '[{"field-id": "x", "names": 3}]', None)
    for said in (*wrong, '[{"field-id": 99, "names": ["s"]}]', '[{"field-id": 1, "names": ["s"]}]'):
        found = dict(newest(store).metadata)
        found["properties"]["schema.name-mapping.default"] = said
        file_of(store, newest(store).version).write_text(json.dumps(found))
        face.table("t").publish("iceberg")
        assert agree(store, "x")[-1] == 3


def test_a_clean_up_leaves_time_travel_over_columns(store):
    face = published(store, "iceberg", rows=ROWS)
    for value in range(3, 6):
        synced(store, pa.table({"x": [value], f"c{value}": ["z"]}), "overwrite")
    run_cleanup(store, scope_of("t"), Retention(age=Retention().age * 0, versions=2))
    assert len(agree(store)) == 2
    face.write_table("t", pa.table({"x": [9], "c5": ["y"]}))
    assert len(agree(store)) == 3


def test_a_column_of_a_cube_without_a_file_is_null_to_every_reader(tmp_path):
    cells = {"p": [1, 1, 2], "d": [1, 2, 3]}
    datasets = {"s": pa.table(cells), "e": pa.table({**cells, "v": [0.5, 1.5, 2.5]})}
    cube = Store(tmp_path).build(
        "k", datasets, seed="s", dimension_columns=["d"], partition_by=["p"]
    )
    cube = cube.publish(kartothek=False).publish(["delta", "iceberg"])
    cube = cube.alter("e", add={"x": "double"})
    new = pa.table({"p": [2], "d": [3], "v": [2.5], "x": [9.0]})
    cube.update({"e": new}, "d = 3")
    url = str(tmp_path / "k++e")
    expected = [(1, None), (2, None), (3, 9.0)]
    for name, read in {**READERS, **DELTA}.items():
        found = read(url).to_pylist()
        assert sorted((row["d"], row["x"]) for row in found) == expected, name
