"""What Python programs do to a cube: one commit each, or nothing at all; no Java, no PySpark."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import (
    CommitConflictError,
    ConditionError,
    ConfigurationError,
    ConsistencyError,
    DataError,
    DatasetNotFoundError,
    KtkError,
    SpecificationError,
    TypeClassError,
)
from ktk_engine.files import write_table  # deep: patched
from tests.support.changes import WriteRequest, build, restore
from tests.support.committed import check, snapshot_of
from tests.support.stores import tree
from tests.support.unreadable_value import write_cube

FLIGHTS = pa.table(
    {
        "origin": ["JFK", "a/b=%", "JFK"],
        "flight": pa.array([1, 2, 3], pa.int32()),
        "dest": ["SFO", "ü", ""],
        "delay": [0.5, None, float("nan")],
    }
)
PLANES = pa.table({"flight": [1, 2], "plane": ["x", None]})
LAYOUT = {"dimension_columns": ["flight"], "partition_by": ["origin"], "seed": "flights"}


@pytest.fixture
def opened(store):
    return Store(store.root)


@pytest.fixture
def cube(opened):
    return opened.build("nyc", {"flights": FLIGHTS, "planes": PLANES}, **LAYOUT, indexes=["dest"])


def rows(cube, **question):
    return cube.query(**question).to_arrow(engine="local").to_pylist()


def snapshot(cube, dataset):
    return snapshot_of(cube._store._store, f"{cube.name}++{dataset}")


def test_all_datasets_are_one_commit(cube):
    assert (cube.version, cube.datasets) == (1, ["flights", "planes"])
    assert [row["plane"] for row in rows(cube)] == ["x", None, None]
    assert snapshot(cube, "flights").physical_schemas[0].field("flight").type == pa.int32()
    assert set(snapshot(cube, "flights").indices) == {"flight", "dest"}
    assert snapshot(cube, "planes").partition_keys == ()
    (entry,) = cube.history()
    assert entry["history"]["command"] == "Python"


def test_one_frame_is_the_seed_dataset(opened):
    cube = opened.build("c", FLIGHTS.to_pandas(), dimension_columns=["flight"])
    assert (cube.datasets, cube.query().count()) == (["seed"], 3)


def test_dimensions_without_an_index(opened):
    cube = opened.build("c", FLIGHTS, **LAYOUT, indexes=["dest"], index_dimensions="never")
    assert set(snapshot(cube, "flights").with_index) == {"dest"}
    assert cube.specification.suppress_index_on == {"flight"}
    cube = cube.append({"flights": FLIGHTS.slice(0, 1)})
    assert set(snapshot(cube, "flights").with_index) == {"dest"}
    assert [row["dest"] for row in rows(cube, where="flight = 2")] == ["ü"]
    with pytest.raises(ConfigurationError, match="must be always or never, but is 'auto'"):
        opened.build("d", FLIGHTS, **LAYOUT, index_dimensions="auto")
    with pytest.raises(ConfigurationError, match="Give one of the two"):
        opened.build("d", FLIGHTS, **LAYOUT, index_dimensions="never", suppress_index_on=["flight"])
    assert opened.cubes() == ["c"]


def test_a_specification_says_it_all(tmp_path, cube):
    other = Store(tmp_path / "other").build(
        "ignored", {"flights": FLIGHTS}, specification=cube.specification
    )
    assert (other.name, other.specification) == ("nyc", cube.specification)


def test_layouts_of_enrichments(opened):
    extra = pa.table({"flight": [1], "origin": ["JFK"], "size": ["L"]})
    cube = opened.build(
        "c",
        {"flights": FLIGHTS, "extra": extra},
        **LAYOUT,
        partition_on={"extra": ["size", "origin"]},
    )
    assert snapshot(cube, "extra").partition_keys == ("size", "origin")
    assert cube.query(where="size = 'L'").count() == 1


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"datasets": {"planes": PLANES}}, ConfigurationError, "needs its seed dataset, flights"),
        ({"dimension_columns": []}, SpecificationError, "dimension_columns must not be empty"),
        ({"dimension_columns": ["fligt"]}, ConfigurationError, "Did you mean `?flight"),
        ({"indexes": ["des"]}, ConfigurationError, "indexes names `des`, which no dataset has"),
        ({"partition_on": {"flights": []}}, ConfigurationError, "is partitioned as the cube is"),
        ({"partition_on": {"more": []}}, ConfigurationError, "partition_on names more"),
        ({"metadata": 3}, ConfigurationError, "metadata must be a mapping by datasets, but is 3"),
        ({"metadata": {"more": {}}}, ConfigurationError, "metadata names more"),
        ({"metadata": {"flights": {"ktk_cube_x": 1}}}, ConfigurationError, "'ktk_cube_x'"),
        ({"metadata": {"flights": {"x": {1}}}}, ConfigurationError, "cannot be written as JSON"),
        ({"metadata": {"flights": 3}}, ConfigurationError, "must be a mapping, but is 3"),
        ({"datasets": [FLIGHTS]}, None, ""),
        ({"datasets": "flights"}, DataError, "rows must be a frame"),
        ({"datasets": {"flights": pd.Series([1])}}, DataError, "but are of type Series"),
        ({"datasets": {"flights": pl.Series([1])}}, DataError, "but are of type Series"),
        ({"datasets": {"flights": pa.chunked_array([[1]])}}, DataError, "of type ChunkedArray"),
        ({"datasets": {"flights": [FLIGHTS, PLANES]}}, DataError, "the first one"),
        ({"datasets": {"flights": []}}, DataError, "without frames has no columns"),
        (
            {"datasets": {"flights": FLIGHTS, "p": pa.table({"x": [1]})}},
            ConfigurationError,
            "none of the cube's dimension columns",
        ),
        (
            {"datasets": {"flights": FLIGHTS, "p": pa.table({"flight": ["1"], "x": [1]})}},
            TypeClassError,
            "flight",
        ),
        (
            {"datasets": {"flights": FLIGHTS, "p": pa.table({"flight": [1], "delay": [1.0]})}},
            TypeClassError,
            "delay",
        ),
        (
            {"datasets": {"flights": pa.concat_tables([FLIGHTS, FLIGHTS])}},
            DataError,
            "repeat a cell",
        ),
        (
            {"datasets": {"flights": FLIGHTS, "p": pa.table({"flight": [None, 1], "x": [1, 2]})}},
            DataError,
            "no value in `flight`",
        ),
        (
            {"datasets": {"flights": pd.DataFrame([[1, 2]], columns=["flight", "flight"])}},
            DataError,
            "several columns `flight`",
        ),
        (
            {"datasets": {"flights": pd.DataFrame({1: [2]})}},
            DataError,
            "must be text",
        ),
        (
            {"datasets": {"flights": pd.DataFrame({"flight": [1, "a"]})}},
            DataError,
            "cannot be converted",
        ),
    ],
)
def test_bad_input_leaves_the_store_as_it_was(opened, change, error, message):
    opened.build("other", {"flights": FLIGHTS}, **LAYOUT)
    before = tree(opened._store.root)
    asked = {"datasets": {"flights": FLIGHTS}, **LAYOUT, **change}
    if error is None:
        asked["datasets"] = {"flights": asked["datasets"]}
        assert opened.build("nyc", **asked).query().count() == 3
        return
    with pytest.raises(error, match=message) as caught:
        opened.build("nyc", **asked)
    assert error is SpecificationError or "othing was" in str(caught.value)
    assert tree(opened._store.root) == before


def test_a_refused_build_of_a_new_store_leaves_no_folder(tmp_path):
    with pytest.raises(ConfigurationError):
        Store(tmp_path / "s").build("nyc", {"flights": FLIGHTS}, **LAYOUT, indexes=["des"])
    assert not (tmp_path / "s").exists()


def test_build_again(opened, cube):
    with pytest.raises(ConsistencyError, match=r"exists already, with flights, planes"):
        opened.build("nyc", {"flights": FLIGHTS}, **LAYOUT)
    with pytest.raises(ConsistencyError, match=r"also has planes"):
        opened.build("nyc", {"flights": FLIGHTS}, **LAYOUT, overwrite=True)
    new = {
        "flights": FLIGHTS.set_column(1, "flight", pa.array(["1", "2", "3"])),
        "planes": PLANES.set_column(0, "flight", pa.array(["1", "2"])),
    }
    again = opened.build("nyc", new, **LAYOUT, overwrite=True)
    assert (again.version, again.schema.field("flight").type) == (2, pa.string())
    assert len(rows(again)) == len(rows(cube)) == 3


def test_metadata_is_kept_and_seen(opened, cube):
    opened.build(
        "nyc",
        {"flights": FLIGHTS, "planes": PLANES},
        **LAYOUT,
        overwrite=True,
        metadata={"flights": {"owner": "ü", "n": [1, None]}},
    )
    cube = cube.append({"flights": FLIGHTS.slice(0, 0)}, metadata={"flights": {"n": 2}})
    opened.build("nyc", {"flights": FLIGHTS, "planes": PLANES}, **LAYOUT, overwrite=True)
    metadata = snapshot(cube, "flights").metadata
    assert (metadata["owner"], metadata["n"]) == ("ü", 2)


def test_extend(cube):
    extended = cube.extend({"more": pd.DataFrame({"flight": [3], "m": [7]})}, indexes=["m"])
    assert (extended.version, extended.datasets) == (2, ["flights", "more", "planes"])
    assert [row["m"] for row in rows(extended)] == [None, None, 7]
    assert "m" in snapshot(cube, "more").indices
    with pytest.raises(ConsistencyError, match="has more already"):
        cube.extend({"more": PLANES})
    with pytest.raises(ConsistencyError, match="is the seed dataset"):
        cube.extend({"flights": FLIGHTS}, overwrite=True)
    moved = cube.extend({"more": pd.DataFrame({"flight": [3], "w": ["z"]})}, overwrite=True)
    assert "m" not in moved.schema.names


def test_append_overlays_cells(cube):
    new = pa.table(
        {"origin": ["JFK", "LGA"], "flight": [3, 9], "dest": ["X", "Y"], "delay": [9.0, 8]}
    )
    found = cube.append({"flights": new})
    assert [(row["flight"], row["dest"]) for row in rows(found)] == [
        (1, "SFO"), (2, "ü"), (3, "X"), (9, "Y"),
    ]  # fmt: skip
    assert [row["flight"] for row in rows(found, where="dest = 'Y'")] == [9]
    with pytest.raises(DatasetNotFoundError, match=r"no dataset mre; it has: flights, planes"):
        cube.append({"mre": new})
    with pytest.raises(TypeClassError, match="delay"):
        cube.append({"flights": new.drop_columns("delay")})
    with pytest.raises(ConfigurationError, match="metadata names x"):
        cube.append({"flights": new}, metadata={"x": {}})
    assert cube.at().version == 2


def test_delete_and_update(cube):
    with pytest.raises(ConditionError, match="did you mean `dest`"):
        cube.delete("dst = 'SFO'")
    with pytest.raises(ConfigurationError, match="the seed dataset flights lacks"):
        cube.delete("plane = 'x'")
    with pytest.raises(ConfigurationError, match="needs dest"):
        cube.delete("dest = 'SFO'", ["planes"])
    assert cube.at().version == 1
    assert [row["flight"] for row in rows(cube.delete("dest = 'SFO'"))] == [2, 3]
    assert cube.at().delete("plane = 'x'", ["planes"]).query(["plane"]).count() == 2
    found = cube.update({"flights": FLIGHTS.slice(0, 1)}, "origin = 'JFK'")
    assert [row["flight"] for row in rows(found)] == [1, 2]
    assert found.delete("flight > 1000").version == found.version
    assert rows(found.update({"flights": FLIGHTS.slice(2)}))[0]["flight"] == 3
    assert len(rows(cube)) == 3


@pytest.mark.parametrize(
    "where",
    ["false", "1 = 2", "month <=> 1.5", "month = 1 and false", "month = 1.5", "month in (9)"],
)
@pytest.mark.parametrize("verb", ["delete", "remove_partitions"])
def test_a_condition_that_is_never_true_takes_nothing_out(opened, where, verb):
    frame = pa.table({"flight": [1, 2], "month": [1, 2], "origin": ["a", "b"]})
    layout = {"dimension_columns": ["flight"], "partition_by": ["month"]}
    cube = opened.build("c", frame, **layout)
    kept = getattr(cube, verb)(where)
    assert (kept.version, kept.query().count()) == (1, 2)
    unpartitioned = opened.build("d", frame, dimension_columns=["flight"])
    assert unpartitioned.delete("false").query().count() == 2
    assert opened.write_table("t", frame, partition_by=["month"]).delete(where).rows == 2


def test_a_partition_value_that_nobody_can_read_does_not_go(store):
    write_cube(store)
    cube = Store.of(store).cube("c")
    before = tree(store.root)
    with pytest.raises(KtkError, match="cannot be read"):
        cube.delete("day = timestamp '2018-01-01'")
    assert tree(store.root) == before


def test_a_partition_goes_without_the_others_that_overlay_it(opened):
    """Where an enrichment has a layout of its own, a cell may move to another partition."""
    sizes = pa.table({"flight": [1, 2, 3], "size": ["L", "M", "L"], "v": [1, 2, 3]})
    cube = opened.build(
        "c",
        {"flights": FLIGHTS, "sizes": sizes},
        **LAYOUT,
        partition_on={"sizes": ["size"]},
    ).append({"sizes": pa.table({"flight": [1], "size": ["M"], "v": [4]})})
    left = cube.remove_partitions("size = 'L'", ["sizes"])
    assert [(row["size"], row["v"]) for row in rows(left)] == [("M", 4), ("M", 2), (None, None)]
    moved = left.append({"sizes": pa.table({"flight": [1], "size": ["L"], "v": [5]})})
    gone = moved.delete("size = 'L'", ["sizes"])
    assert [row["v"] for row in rows(gone)] == [None, 2, None]


def test_a_deletion_opens_only_what_it_must(cube, monkeypatch):
    opened = []
    whole = type(cube._store._store).open_read
    monkeypatch.setattr(
        type(cube._store._store),
        "open_read",
        lambda self, key, *rest, **more: opened.append(key) or whole(self, key, *rest, **more),
    )
    before = {info.key for info in cube._store._store.list("nyc++flights/table/")}
    cube.remove_partitions("origin = 'JFK'")
    assert {info.key for info in cube._store._store.list("nyc++flights/table/")} == before
    data = [key for key in opened if "/table/" in key and "JFK" in key]
    assert data == []
    cube.delete("flight = 2 and dest = 'ü'")  # the same way of counting sees what is opened
    assert [key for key in opened if "flights/table/" in key]


def test_partitions(cube):
    with pytest.raises(ConfigurationError, match="partitioned by origin, not by flight"):
        cube.remove_partitions("flight = 1")
    with pytest.raises(ConfigurationError, match="partitioned by nothing, not by origin"):
        cube.remove_partitions("origin = 'JFK'", ["planes"])
    with pytest.raises(DatasetNotFoundError):
        cube.remove_partitions(datasets=["x"])
    assert [row["flight"] for row in rows(cube.remove_partitions("origin = 'JFK'"))] == [2]
    assert snapshot(cube, "planes").rows == 2
    assert rows(cube.remove_partitions()) == []
    assert snapshot(cube, "planes").rows == 0
    assert check(cube._store._store, "nyc").problems == ()


def test_drop(cube):
    with pytest.raises(ConsistencyError, match="flights is the seed dataset, without which planes"):
        cube.drop("flights")
    with pytest.raises(DatasetNotFoundError, match="no dataset x"):
        cube.drop("planes", "x")
    for every in (["flights"], ["flights", "planes"]):
        with pytest.raises(ConsistencyError, match=r"whole cube: (store\.drop\('nyc'\))\."):
            cube.drop(*every)
    assert cube.at().version == cube.version
    assert cube.drop("planes").datasets == ["flights"]


def test_a_whole_cube_or_table_goes_and_comes_back(opened, cube):
    opened.write_table("t", PLANES)
    opened.drop("nyc")
    opened.drop("t")
    assert (opened.cubes(), opened.tables()) == ([], [])
    with pytest.raises(DatasetNotFoundError):
        opened.drop("t")
    restore(opened._store, "nyc", 1)
    assert len(rows(opened.cube("nyc"))) == 3


def test_a_transaction_publishes_all_or_nothing(cube):
    root = cube._store._store.root
    before = tree(root)
    with pytest.raises(KeyboardInterrupt), cube.transaction() as changes:
        changes.append({"flights": FLIGHTS})
        changes.drop("planes")
        raise KeyboardInterrupt
    assert tree(root) == before
    with pytest.raises(DatasetNotFoundError), cube.transaction() as changes:
        changes.drop("planes")
        changes.append({"planes": PLANES})
    assert tree(root) == before
    with cube.transaction() as changes:
        changes.drop("planes")
        changes.extend({"planes": pa.table({"flight": [3], "wings": [2]})})
        changes.delete("flight = 1")
        changes.append({"planes": pa.table({"flight": [2], "wings": [4]})})
        assert cube.at().version == 1
        assert "Transaction('nyc', version=1)" in repr(changes)
    assert [(row["flight"], row["wings"]) for row in rows(cube.at())] == [(2, 4), (3, 2)]
    assert cube.at().version == 2
    with cube.transaction():
        pass
    assert cube.at().version == 2


def test_what_comes_between_is_kept_or_refused(cube):
    """An append goes on top of another; a replacement of what another changed is refused."""
    late = pa.table({"origin": ["Z"], "flight": [7], "dest": ["q"], "delay": [None]})
    late = late.set_column(3, "delay", pa.array([None], pa.float64()))
    with cube.transaction() as changes:
        changes.append({"flights": late})
        cube.append({"flights": late.set_column(1, "flight", pa.array([8]))})
    assert [row["flight"] for row in rows(cube.at())] == [1, 2, 3, 7, 8]
    before = cube.at().version
    with pytest.raises(CommitConflictError), cube.transaction() as changes:
        changes.delete("origin = 'Z'")
        cube.append({"flights": late.set_column(1, "flight", pa.array([9]))})
    assert cube.at().version == before + 1
    assert cube.delete("origin = 'Z'").query().count() == 3


def test_threads_delete_and_append_at_once(cube):
    """Each of them is done exactly once, whoever comes first."""
    errors: list[KtkError] = []

    def work(number: int) -> None:
        try:
            row = {"origin": ["T"], "flight": [100 + number], "dest": ["t"], "delay": [1.0]}
            cube.append({"flights": pa.table(row)})
            cube.delete(f"flight = {100 + number}")
        except KtkError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [row["flight"] for row in rows(cube.at())] == [1, 2, 3]
    assert cube.at().version == 13


def test_a_cube_built_by_models_is_extended(opened):
    """Python adds to what models have built, and models to that."""
    target = WriteRequest("flights", "seed", "nyc", ("flight",), ("origin",), ("dest",))
    build(opened._store, FLIGHTS, target)
    cube = opened.cube("nyc").append({"flights": FLIGHTS.slice(0, 1)})
    assert cube.query().count() == 3
    build(opened._store, FLIGHTS, target, mode="append")
    assert cube.at().delete("dest = 'ü'").query().count() == 2


def test_files_of_the_store_stay_sound_after_a_full_disk(opened, cube, monkeypatch):
    before = tree(opened._store.root)

    def fail(*arguments, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(write_table, "write_files", fail)
    with pytest.raises((OSError, KtkError)):
        cube.append({"flights": FLIGHTS})
    assert tree(opened._store.root) == before


def test_the_log_says_when(cube):
    (entry,) = cube.history()
    assert abs(datetime.fromisoformat(entry["time"]) - datetime.now(UTC)).total_seconds() < 60
