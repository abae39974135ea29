"""Columns that are added to a cube: null without a file where Kartothek sees no documents."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from ktk_engine.errors import CommitConflictError, ConsistencyError
from tests.support.changes import WriteRequest, build, undrop
from tests.support.interleaving import Run, Schedule, SteppingStore, bounded

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


def lacking(cube):
    """The columns that a file lacks, of a cube with documents for Kartothek."""
    found = set()
    for snapshot in cube.at()._loaded.snapshots.values():
        stored = {name for name in snapshot.schema.names if name not in snapshot.partition_keys}
        for place in snapshot.file_column("physical").to_pylist():
            found |= stored.difference(snapshot.physical_schemas[place].names)
        assert snapshot.has_documents or not snapshot.is_seed
    return found


def interleaved(schedule, earlier):
    """A column is added while documents are turned on; gives the run, and what was refused.

    The files lack the columns `earlier` already, so that they are written again.
    """
    built = SteppingStore()
    cube = Store.of(built).build(
        "k",
        {"s": pa.table(CELLS), "e": pa.table({**CELLS, "v": [0.5, 1.5, 2.5, 3.5]})},
        seed="s",
        dimension_columns=["L"],
        partition_by=["P"],
    )
    cube = cube.publish(kartothek=False)
    if earlier:
        cube.alter("e", add=dict.fromkeys(earlier, "double"))
    run = Run(built.objects, schedule)
    changes = (
        lambda store: Store.of(store).cube("k").alter("e", add={"y": "double"}),
        lambda store: Store.of(store).cube("k").publish(kartothek=True),
    )
    refused = run.all(changes)
    return run, refused, Store.of(built).cube("k")


@pytest.mark.parametrize("earlier", [[], ["x"]])
def test_a_column_that_is_added_while_documents_are_turned_on(earlier):
    steps = interleaved(Schedule(), earlier)[0].step
    conflicts = 0
    for schedule in list(bounded(steps, 2, 1))[::7]:
        _, refused, cube = interleaved(schedule, earlier)
        assert all(type(error) in (type(None), CommitConflictError) for error in refused), schedule
        conflicts += refused[1] is not None
        cube = cube if refused[1] is None else cube.publish(kartothek=True)
        assert not lacking(cube), schedule
        assert cube.schema.names[3:] == [*earlier, "y"], schedule
    assert conflicts < steps / 7


WAYS_BACK = {
    "restore": lambda cube, store: cube.restore("lacking"),
    "undrop": lambda cube, store: undrop(store._store, "k", "e"),
    "copy": lambda cube, store: cube.at("lacking").copy_to(
        Store(store.url + "-other"), "o", datasets=["e"], overwrite=True
    ),
}


@pytest.mark.parametrize("way", WAYS_BACK)
def test_what_comes_back_without_a_file_is_refused_where_documents_are_on(cube, tmp_path, way):
    cube.tag("lacking")
    store = Store(tmp_path)
    if way == "undrop":
        cube = cube.drop("e")
    if way == "copy":
        other = cube.copy_to(Store(store.url + "-other"), "o")
        target = other.publish(kartothek=True)
    cube = cube.publish(kartothek=True)
    with pytest.raises(
        ConsistencyError, match=r"files of it lack: `[xy]`.*(kartothek=False|`kartothek` off)"
    ) as error:
        WAYS_BACK[way](cube, store)
    assert "Nothing was" in str(error.value)
    if way == "copy":
        assert not lacking(target)
        return
    assert not lacking(cube)
    WAYS_BACK[way](cube.at().publish(kartothek=False), store)
    cube = cube.at().publish(kartothek=True)
    assert not lacking(cube)
    assert {row["x"] for row in rows(cube)} == {None}


def test_what_was_there_with_documents_is_copied_renamed_and_brought_back(tmp_path):
    """An append with another column leaves files without it, with or without documents."""
    rows_ = {"x": [1, 2]}
    store, other = Store(tmp_path / "here"), Store(tmp_path / "other")
    cube = store.build(
        "k", {"s": pa.table(rows_), "e": pa.table({**rows_, "v": [1, 2]})}, seed="s",
        dimension_columns=["x"],
    )  # fmt: skip
    more = pa.table({"x": [3], "v": [3], "new": [9]})
    request = WriteRequest("e", "enrichment", "k", ("x",), on_schema_change="append_new_columns")
    build(store._store, more, request, mode="append")
    cube = cube.at().append({"s": pa.table({"x": [3]})})
    assert cube.copy_to(other, "k").query().count() == 3
    assert cube.at().drop("e").restore(cube.version).query(["new"]).to_arrow()[
        "new"
    ].to_pylist() == [
        None,
        None,
        9,
    ]
    store.cube("k").drop("e")
    undrop(store._store, "k", "e")
    assert store.cube("k").rename("kk").query(["new"], "new = 9").count() == 1


def test_only_a_cube_with_documents_refuses_what_its_files_lack(cube, tmp_path):
    """A copy of the seed dataset from a cube with documents goes on as the target has it."""
    target = cube.copy_to(Store(tmp_path / "target"), "k")
    source = cube.publish(kartothek=True)
    seed = source.specification.seed_dataset
    assert source.copy_to(Store(tmp_path / "target"), "k", datasets=[seed], overwrite=True)
    assert target.at().query(["x", "y"]).count() == 4
