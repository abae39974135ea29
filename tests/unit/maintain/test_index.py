"""Indexes that are built and dropped without rewriting a data file."""

from __future__ import annotations

import datetime
import decimal
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ktk_engine import Store
from ktk_engine.errors import (
    CommitConflictError,
    ConfigurationError,
    DataError,
    DatasetNotFoundError,
)
from ktk_engine.files.index_place import IndexPlace  # deep: a write in between
from ktk_engine.files.written_files import WrittenFiles  # deep: a write in between
from ktk_engine.maintain.check import check
from ktk_engine.maintain.index import change_indexes, plan_indexes, run_index_plan
from ktk_engine.maintain.remove import remove
from ktk_engine.write.rebase import rebased  # deep: a write in between
from tests.support.changes import WriteRequest, build
from tests.support.committed import cube_scope, resolve, scope_of, snapshot_of, version_of
from tests.support.dataset_builder import build_nyc, write_plain, write_plain_nyc
from tests.support.documents import load_document, stored_index
from tests.support.kartothek import (
    PLACES,
)
from tests.support.stores import keys

CUBE = cube_scope("c")
SEED = WriteRequest("s", "seed", "c", ("x",), ("p",))
MORE = WriteRequest("e", "enrichment", "c", ("x",))


def cells(*numbers, places=("a",)):
    rows = [{"p": p, "x": x, "v": f"{x}%"} for p in places for x in numbers]
    return pa.Table.from_pylist(rows)


def index_of(store, uuid, column):
    """An index as sorted pairs of a value and the number of its file."""
    snapshot = snapshot_of(store, uuid)
    positions = {label: at for at, label in enumerate(snapshot.labels)}
    pairs = stored_index(store, snapshot.indices[column]).to_pylist()
    return sorted((pair["value"], positions[pair["label"]]) for pair in pairs)


def plain(uuid):
    return WriteRequest(uuid).scope


def data_files(store):
    return {key for key in keys(store) if "/table/" in key}


@pytest.mark.parametrize("write", [build_nyc, write_plain_nyc], ids=["ours", "kartothek"])
def test_an_index_prunes_and_no_data_file_is_touched(store, write):
    write(store)
    before = data_files(store)
    cube = Store(store.root).cube("nyc")
    asked = {"columns": ["delay"], "where": "delay = 11"}
    rows = cube.query(**asked).to_arrow(engine="local")
    indexed = cube.index("delay", "gust")
    assert indexed.version == cube.version + 1
    assert indexed.specification.index_columns == {"delay", "gust"}
    assert indexed.query(**asked).to_arrow(engine="local") == rows
    assert "delay" in indexed.query(**asked).explain()
    assert data_files(store) == before
    assert not check(store, "nyc").problems
    head = resolve(store, cube_scope("nyc")).head
    assert {"index"} <= {change.operation for change in head.changes.values()}
    assert head.history["reason"] == "index delay, gust"
    assert set(load_document(store, "nyc++flights").indices) == {"carrier", "hour", "delay"}
    assert set(load_document(store, "nyc++weather").indices) == {"gust"}
    dropped = indexed.drop_index("delay")
    assert dropped.specification.index_columns == {"gust"}
    assert dropped.query(**asked).to_arrow(engine="local") == rows
    assert cube.at(indexed.version).specification.index_columns == {"delay", "gust"}


def test_values_of_every_file_are_in_it(store):
    build(store, cells(1, 2, places=PLACES), SEED)
    build(store, cells(3, places=PLACES[:1]), SEED, mode="append")
    change_indexes(store, "c", ["v"])
    pairs = index_of(store, "c++s", "v")
    assert len(pairs) == 11 and {value for value, _ in pairs} == {"1%", "2%", "3%"}
    build(store, cells(4), SEED, mode="append")
    assert "v" not in snapshot_of(store, "c++s").indices  # it is not configured


def test_a_dimension_without_index_is_suppressed_in_every_document(store):
    build_nyc(store)
    cube = Store(store.root).cube("nyc").drop_index("hour")
    assert cube.specification.suppress_index_on == {"hour"}
    for name in cube.datasets:
        metadata = load_document(store, f"nyc++{name}").metadata
        assert metadata["ktk_cube_suppress_index_on"] == ["hour"], name
    assert not check(store, "nyc").problems
    again = cube.index("hour", dataset="flights")
    assert again.specification.suppress_index_on == frozenset()
    for name in cube.datasets:
        metadata = load_document(store, f"nyc++{name}").metadata
        assert metadata["ktk_cube_suppress_index_on"] == [], name
    assert "hour" in load_document(store, "nyc++flights").indices


def test_a_dimension_is_indexed_in_every_dataset_or_in_one(store):
    build_nyc(store)
    cube = Store(store.root).cube("nyc").index("hour")
    indices = {u: set(s.indices) for u, s in resolve(store, cube_scope("nyc")).snapshots().items()}
    assert indices["nyc++weather"] == {"hour"} and indices["nyc++airlines"] == set()
    cube = cube.drop_index("hour", dataset="weather")
    assert cube.specification.suppress_index_on == frozenset()
    cube = cube.index("carrier", dataset="airlines")
    assert "carrier" in load_document(store, "nyc++airlines").indices


def test_what_is_so_already_is_no_commit(store):
    build_nyc(store)
    cube = Store(store.root).cube("nyc").index("delay")
    assert cube.index("delay", "hour", dataset="flights").version == cube.version
    with pytest.warns(UserWarning, match="nyc: there is no index on gust. Nothing was changed"):
        assert cube.drop_index("gust").version == cube.version
    cube = cube.drop_index("hour")
    with pytest.warns(UserWarning, match="there is no index on hour"):
        assert cube.drop_index("hour").version == cube.version


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (["origin"], "`origin` is a partition column. It needs no index"),
        (["dely"], "no column `dely`. Did you mean `delay`"),
        (["delay", "nothing"], "no column `nothing`"),
    ],
)
def test_columns_that_can_have_none(store, columns, reason):
    build_nyc(store)
    before = keys(store)
    with pytest.raises(ConfigurationError) as error:
        change_indexes(store, "nyc", columns)
    assert reason in str(error.value) and "Nothing was written" in str(error.value)
    assert keys(store) == before


def test_classes_and_names_that_can_have_none(store):
    rows = pa.table({"d": [decimal.Decimal(1)], "l": [[1]], "partition": [1], "n": pa.nulls(1)})
    build(store, rows, WriteRequest("t"))
    for name in rows.column_names:
        with pytest.raises(ConfigurationError, match="cannot be indexed"):
            change_indexes(store, "t", [name])
    with pytest.raises(DatasetNotFoundError, match="is a table"):
        change_indexes(store, "t", ["d"], "s")
    build_nyc(store)
    with pytest.raises(DatasetNotFoundError, match="Did you mean weather"):
        change_indexes(store, "nyc", ["gust"], "wether")


def test_awkward_values_of_a_table(store):
    nan = float("nan")
    rows = pa.table(
        {
            "text": ["", "a/b", None],
            "flag": [True, None, False],
            "f": [nan, -0.0, None],
            "u": pa.array([2**64 - 1, 0, None], pa.uint64()),
            "day": [datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)],
            "at": pa.array([1_000, None, 2_000], pa.timestamp("ns")),
        }
    )
    build(store, rows, WriteRequest("t"))
    table = Store(store.root).table("t").index(*rows.column_names)
    assert [value for value, _ in index_of(store, "t", "u")] == [0, 2**64 - 1]
    for where, count in {
        "text = ''": 1,
        "flag = false": 1,
        "f = 0": 1,
        "u = 18446744073709551615": 1,
        "day > date '2000-01-01'": 1,
        "at > timestamp '1970-01-01 00:00:00.0000015'": 1,
        "text is null": 1,
    }.items():
        assert table.query(where=where).count(engine="local") == count, where
    assert not check(store, "t").problems
    left = table.drop_index("f", "u").info()["datasets"][0]["indexes"]
    assert sorted(left) == ["at", "day", "flag", "text"]


def test_rows_without_a_value_are_refused_in_a_cube(store):
    rows = pa.table({"p": ["a", "a"], "x": [1, 2], "v": [1, None]})
    build(store, rows, SEED)
    before = keys(store)
    with pytest.raises(DataError, match="1 row has no value in `v`"):
        change_indexes(store, "c", ["v"])
    assert keys(store) == before


def meanwhile(store, action):
    """Let something happen when the index file is written."""

    def hook(method, key):
        if "/indices/" in key and hook in store.hooks:
            store.hooks.remove(hook)
            action()

    store.hooks.append(hook)


def test_it_goes_on_top_of_rows_that_came_meanwhile(store):
    build(store, cells(1, 2), SEED)
    meanwhile(store, lambda: build(store, cells(3), SEED, mode="append"))
    assert change_indexes(store, "c", ["v"]).version == 3
    assert index_of(store, "c++s", "v") == [("1%", 0), ("2%", 0), ("3%", 1)]
    change_indexes(store, "c", ["v"], drop=True)
    meanwhile(store, lambda: build(store, cells(7, places="a"), SEED, mode="partitions"))
    change_indexes(store, "c", ["v"])
    assert index_of(store, "c++s", "v") == [("7%", 0)]
    assert not check(store, "c").problems


def test_it_goes_on_top_of_a_rebuild_that_widened_the_column(store):
    build(store, pa.table({"a": [1, 2]}), WriteRequest("t"))
    other = pa.table({"a": ["x"]})
    meanwhile(store, lambda: build(store, other, WriteRequest("t")))
    change_indexes(store, "t", ["a"])
    assert index_of(store, "t", "a") == [("x", 0)]


def test_a_column_or_dataset_that_is_gone_is_a_conflict(store):
    build(store, pa.table({"a": [1], "b": [1]}), WriteRequest("t"))
    meanwhile(store, lambda: build(store, pa.table({"b": [1]}), WriteRequest("t")))
    with pytest.raises(CommitConflictError, match="can no longer have an index on a"):
        change_indexes(store, "t", ["a"])
    meanwhile(store, lambda: remove(store, "t"))
    with pytest.raises(CommitConflictError, match="was removed"):
        change_indexes(store, "t", ["b"])
    assert not [key for key in keys(store) if "/indices/" in key or "/intent/" in key]


def test_files_written_while_an_index_was_built_are_in_it(store):
    """A write that keeps the indexes as they are knows no values of one that it has not seen."""
    target = WriteRequest("t")
    build(store, pa.table({"a": [1]}), target)
    started = snapshot_of(store, "t")
    build(store, pa.table({"a": [5]}), target, mode="append")
    newest = snapshot_of(store, "t")
    addition = newest.of_files(pc.equal(newest.files["position"], 1).combine_chunks())
    build(store, pa.table({"a": [1]}), target)
    change_indexes(store, "t", ["a"])
    base = snapshot_of(store, "t")
    folder = scope_of("t").segment_folder("f" * 32)
    place = IndexPlace(store, "t", "f" * 32, folder)
    written = WrittenFiles(addition.files, {}, {}, (), addition.physical_schemas)
    compacted = replace(target, mode="files", verb="compact")
    grown = rebased(compacted, started, addition, place, written)(base, 0)
    pairs = stored_index(store, grown.indices["a"])
    assert sorted(pairs["value"].to_pylist()) == [1, 5]


def test_an_append_beside_it_is_no_conflict(store):
    build(store, cells(1), SEED)
    state = resolve(store, CUBE)
    change_indexes(store, "c", ["v"])
    indexed = WriteRequest("s", "seed", "c", ("x",), ("p",), indexes=("v",))
    build(store, cells(2), indexed, mode="append", state=state)
    assert index_of(store, "c++s", "v") == [("1%", 0), ("2%", 1)]


def test_a_failure_leaves_nothing(store):
    build(store, cells(1), SEED)
    build(store, pa.table({"x": [1], "w": [1]}), MORE)
    before = keys(store)

    def stop(method, key):
        if "snapshots" in key:
            raise KeyboardInterrupt

    store.hooks.append(stop)
    with pytest.raises(KeyboardInterrupt):
        change_indexes(store, "c", ["v", "w"])
    assert keys(store) == before


def test_a_restored_version_has_its_indices(store):
    build(store, cells(1), SEED)
    cube = Store(store.root).cube("c").index("v").drop_index("v")
    assert cube.restore(2).specification.index_columns == {"v"}
    assert not check(store, "c").problems


def test_command(store, ktk):
    build_nyc(store)
    said = ktk("index", "nyc", "delay", "gust", "--dry-run").stdout
    assert "Would index flights (delay), weather (gust). Nothing" in said
    said = ktk("index", "nyc", "delay", "--dataset", "flights").stdout
    assert "Indexed flights (delay). Now version 4." in said
    assert "already indexed" in ktk("index", "nyc", "delay").stdout
    said = ktk("index", "nyc", "delay", "hour", "--drop").stdout
    assert "Dropped indexes of flights (delay, hour). Now version 5" in said


def test_of_a_plan_that_has_nothing_nothing_comes(store):
    write_plain(store, "t", pa.table({"p": PLACES, "a": [1] * 5}), ("p",), indexes=("a",))
    plan = plan_indexes(store, "t", ["a"])
    assert run_index_plan(plan).datasets == () and not version_of(store, plain("t"))


@pytest.mark.parametrize(
    ("values", "said"), [(range(300), True), ([n % 3 for n in range(300)], False)]
)
def test_partitions_of_single_rows_are_said(store, values, said):
    rows = pa.table({"day": list(values), "v": range(300)})
    notes = build(store, rows, WriteRequest("t", partition_by=("day",))).notes
    assert any("300 files for 300 rows: partition_by (day)" in note for note in notes) == said
