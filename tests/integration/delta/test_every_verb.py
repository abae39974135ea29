"""After each verb of Python's face, every published form is at the version that was committed."""

from __future__ import annotations

import ast
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.api.cube import Cube  # deep: which verbs there are
from ktk_engine.api.table import Table  # deep: likewise
from tests.integration.delta.readers import by_arrow
from tests.integration.iceberg.readers import by_pyiceberg

ENGINE = Path(__file__).parents[3] / "ktk_engine"
FORMS = ("delta", "iceberg")
# What reads only.
READS = {
    "query",
    "prepare",
    "as_of",
    "at",
    "changes",
    "info",
    "check",
    "history",
    "stats",
    "tags",
    "head",
}
CUBE = {
    "append": lambda cube: cube.append({"seed": rows([2], [4]), "more": payload([9], [9])}),
    "update": lambda cube: cube.update({"seed": rows([1], [7])}),
    "delete": lambda cube: cube.delete("x = 2"),
    "remove_partitions": lambda cube: cube.remove_partitions("p = 1"),
    "extend": lambda cube: cube.extend({"other": pa.table({"p": [1], "x": [1], "w": [3]})}),
    "drop": lambda cube: cube.drop("more"),
    "alter": lambda cube: cube.alter("more", rename={"v": "u"}),
    "index": lambda cube: cube.index("v", dataset="more"),
    "drop_index": lambda cube: cube.drop_index("x", dataset="seed"),
    "compact": lambda cube: cube.append({"seed": rows([1], [5])}).compact(),
    "restore": lambda cube: cube.delete("x = 1").restore(2),
    "rename": lambda cube: cube.rename("d"),
    "copy_to": lambda cube: cube.copy_to(cube._store, name="d"),
    "tag": lambda cube: cube.tag("first"),
    "untag": lambda cube: (cube.tag("first"), cube.untag("first")),
    "publish": lambda cube: cube.publish(None).publish(FORMS),
    "transaction": lambda cube: change(cube),
}
TABLE = {
    "delete": lambda table: table.delete("x = 2"),
    "alter": lambda table: table.alter(drop=["p"]),
    "repartition": lambda table: table.repartition("p"),
    "index": lambda table: table.index("x"),
    "drop_index": lambda table: table.index("x").drop_index("x"),
    "compact": lambda table: table.compact(),
    "restore": lambda table: table.delete("x = 1").restore(2),
    "rename": lambda table: table.rename("d"),
    "copy_to": lambda table: table.copy_to(table._store, name="d"),
    "tag": lambda table: table.tag("first"),
    "untag": lambda table: (table.tag("first"), table.untag("first")),
    "publish": lambda table: table.publish(None).publish(FORMS),
}


def rows(p, x):
    return pa.table({"p": pa.array(p), "x": pa.array(x)})


def payload(x, v):
    return pa.table({"x": pa.array(x), "v": pa.array(v)})


def change(cube):
    with cube.transaction() as changes:
        changes.append({"seed": rows([3], [6])})
        changes.delete("x = 1")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "s")


@pytest.fixture
def cube(store):
    seed, more = rows([1, 1, 2], [1, 2, 3]), payload([1, 3], [5, 6])
    datasets = {"seed": seed, "more": more}
    store.build("c", datasets, dimension_columns=["x"], partition_by=["p"])
    return store.cube("c").publish(FORMS)


@pytest.fixture
def table(store):
    store.write_table("t", rows([1, 1, 2], [1, 2, 3]))
    return store.table("t").publish(FORMS)


def assert_published(store: Store, tmp_path: Path) -> None:
    """Kartothek's documents and Delta's logs say what is committed."""
    for found in (*map(store.cube, store.cubes()), *map(store.table, store.tables())):
        assert found.check()["problems"] == ()
    for uuid in [*store.tables(), *cube_datasets(store)]:
        cube, _, dataset = uuid.partition("++")
        relation = store.cube(cube)._state if dataset else store.table(uuid)._state
        snapshot = relation.snapshot(uuid)
        assert snapshot.published_as == set(FORMS), uuid
        assert by_arrow(str(tmp_path / "s" / uuid)).num_rows == snapshot.rows
        assert by_pyiceberg(str(tmp_path / "s" / uuid)).num_rows == snapshot.rows


def cube_datasets(store: Store) -> list[str]:
    return [f"{name}++{dataset}" for name in store.cubes() for dataset in store.cube(name).datasets]


@pytest.mark.parametrize("verb", CUBE)
def test_a_cube(store, cube, tmp_path, verb):
    CUBE[verb](cube)
    if verb == "extend":
        store.cube("c").publish(FORMS, dataset="other")
    assert_published(store, tmp_path)


@pytest.mark.parametrize("verb", TABLE)
def test_a_table(store, table, tmp_path, verb):
    TABLE[verb](table)
    assert_published(store, tmp_path)


@pytest.mark.parametrize("mode", ["append", "overwrite", "merge"])
def test_rows_written_to_a_table(store, table, tmp_path, mode):
    table.repartition("p")
    key = {"key": ["x"]} if mode == "merge" else {}
    store.write_table("t", rows([2], [3]), mode, **key)
    assert_published(store, tmp_path)


def test_what_is_dropped_and_cleaned_up(store, cube, table, tmp_path):
    table.delete("x = 1")
    store.cleanup("t", timedelta(0), 1, delete=True)
    assert_published(store, tmp_path)
    store.drop("c")
    store.drop("t")
    assert not list((tmp_path / "s").glob("*/_delta_log/*.json"))
    assert not list((tmp_path / "s").glob("*/metadata/*"))
    assert not list((tmp_path / "s").glob("*by-dataset-metadata*"))


@pytest.mark.parametrize(("face", "tried"), [(Cube, CUBE), (Table, TABLE)])
def test_every_verb_is_tried(face, tried):
    methods = {
        name
        for name in dir(face)
        if not name.startswith("_") and not isinstance(getattr(face, name), property)
    }
    assert methods - READS == set(tried)


def test_a_commit_that_leaves_publishing_to_its_caller_is_one_of_two():
    """Copies publish when the copy is whole, staged runs when all scopes are committed."""
    left = {
        path.name
        for path in ENGINE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "ScopeTransaction"
        and isinstance(node.args[-1], ast.Constant)
    }
    assert left == {"copy.py", "publish_stages.py"}
