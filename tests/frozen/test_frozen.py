"""A store with every feature is read as it was when it was made: all of it, and nothing changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import deltalake
import pytest

from ktk_engine import Store
from ktk_engine.log.entry import Operation  # deep: all of them are in the store
from ktk_engine.log.intent import read_intents  # deep: of a writer that died
from ktk_engine.log.version import readable_versions  # deep: all that a log has
from ktk_engine.maintain.check import check_all  # deep: all that is in a store
from ktk_engine.types.type_class import is_nested  # deep: what no condition compares
from tests.frozen.contents import CHANGED, by_library, by_page, recorded, unpack
from tests.frozen.make_store import SCHEMA, SISTER, VIEWS
from tests.frozen.reader import Reader
from tests.golden.canonical import row_lines
from tests.support.committed import cube_scope, read_computed, read_view, resolve, scope_of
from tests.support.queries import quote_identifier
from tests.support.stores import LocalStore, tree


@pytest.fixture
def frozen(tmp_path) -> Iterator[Path]:
    """The frozen warehouse, in which nobody may write."""
    warehouse = unpack(tmp_path)
    paths = [warehouse, *warehouse.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = tree(warehouse)
    yield warehouse
    for path in paths:
        path.chmod(0o755)
    assert tree(warehouse) == before


def test_each_relation_has_its_rows_at_each_version(frozen):
    expected, found = recorded(), by_library(frozen)
    assert sorted(found) == sorted(expected)
    assert [title for title in found if found[title] != expected[title]] == []


def test_the_page_is_enough_to_read_it(frozen):
    expected, found = recorded(), by_page(frozen)
    others = {f"{SCHEMA}.{name}, {CHANGED}" for name in ("plain", "joint")}
    assert {*found} == {*expected} - others - {f"view {SCHEMA}.{name}" for name in VIEWS}
    assert [title for title in found if found[title] != expected[title]] == []


def test_each_key_of_the_format_is_in_use(frozen):
    """A key without a value in the store could be ignored, and no test would notice."""
    unused = defaultdict[str, set[str]](set)
    used = defaultdict[str, set[str]](set)

    def look(kind: str, document: dict[str, Any]) -> None:
        for name, value in document.items():
            (used if value else unused)[kind].add(name)

    operations, reader = set(), Reader(frozen / SCHEMA)
    for scope in reader.scopes():
        for entry in reader.entries(scope):
            look("entry", entry)
            for item in entry["datasets"].values():
                look("dataset", item)
                if (reader.root / item["snapshot"]).exists():
                    document, files = reader.snapshot(item)
                    look("snapshot", document)
                    look("property", document["properties"])
                    known = {n: len(files) - files[n].null_count for n in files.schema.names}
                    look("file", {name: n for name, n in known.items() if "." not in name})
            for item in entry["changes"].values():
                look("change", item)
                operations.add(item["operation"])
    for view in reader.views():
        look("view", view)
    left = {kind: names - used[kind] for kind, names in unused.items() if names - used[kind]}
    assert left == {kind: {"needs"} for kind in ("entry", "snapshot", "view")}
    assert operations == {*get_args(Operation)} - {"cleanup"}


def test_all_else_is_read(frozen):
    store, face = LocalStore(frozen / SCHEMA), Store(frozen / SCHEMA)
    assert face.cube("c").tags() == {"first": 2}
    assert face.table("cleaned").tags() == {"kept": 2}
    assert face.table("t").info()["datasets"][0]["comment"] == "A table."
    assert [entry["version"] for entry in face.table("t").history()] == [*range(13, 0, -1)]
    assert face.table("keyed").query(["name"], "k = 2").to_arrow().to_pylist() == [{"name": "bb"}]
    assert (
        face.cube("tiny").query(["x"], "i = 'i0'", limit=9).count() == 1
    )  # by an index in segments
    assert read_view(store, "both").comments.columns == {"x": "a number"}
    note = read_computed(store, scope_of("t"), "t")
    assert [item.uuid for item in note.read] == ["c++seed"] and note.unknown and note.work
    assert [intent.commit for intent in read_intents(store, scope_of("t"))] == ["d" * 32]
    shared = deltalake.DeltaTable(str(frozen / SCHEMA / "shared")).to_pyarrow_table()
    assert (
        row_lines(shared.select(["p", "x", "s"]).to_pylist())
        == recorded()["main.shared, version 4"]
    )


@pytest.mark.parametrize("schema", [SCHEMA, SISTER])
def test_nothing_is_damaged(frozen, schema):
    found = check_all(LocalStore(frozen / schema), deep=True)
    problems = [item for checked in found for item in checked.problems]
    # Iceberg's metadata names files by addresses, and the store was made elsewhere.
    assert [item.file for item in problems] == ["shared/iceberg/metadata"] * (schema == SCHEMA)


def test_the_next_commit_builds_on_it(tmp_path):
    """Each relation takes rows, forgets earlier versions, and is sound in each of its forms."""
    store = LocalStore(unpack(tmp_path) / SCHEMA)
    face = Store.of(store)
    tables = sorted({*face.tables()} - {"durations", "keyed"})  # others' columns; Spark's checks
    for name in tables:
        rows = face.table(name).query().to_arrow()
        changed = face.write_table(name, rows.slice(0, 1)).query().to_arrow()
        assert row_lines([*rows.to_pylist(), *rows.slice(0, 1).to_pylist()]) == row_lines(
            changed.to_pylist()
        )
    for name in face.cubes():
        cube = face.cube(name)
        rows = cube.query().to_arrow()
        seed = cube.specification.seed_dataset
        names = face.cube(name)._loaded.snapshots[seed].schema.names
        changed = cube.append({seed: rows.select(names).slice(0, 1)}).query().to_arrow()
        assert row_lines(rows.to_pylist()) == row_lines(changed.to_pylist())
    for name in [*tables, *face.cubes()]:
        face.cleanup(name, timedelta(0), keep_versions=1, delete=True)
    assert [item for found in check_all(store, deep=True) for item in found.problems] == []


def test_conditions_see_the_rows_that_count(frozen):
    """An older row does not come back because a newer one of its cell is skipped."""
    asked = 0
    for schema in (SCHEMA, SISTER):
        store = Store(frozen / schema)
        for name in store.cubes():
            cube = store.cube(name)
            rows = cube.query().to_arrow()
            versions = readable_versions(resolve(store._store, cube_scope(name)))
            earlier = [cube.at(version).query().to_arrow() for version in versions]
            for column in rows.column_names:
                if is_nested(rows.schema.field(column).type):
                    continue
                values = {
                    v for t in earlier if column in t.column_names for v in t[column].to_pylist()
                }
                for value in values - {None}:
                    if value != value:
                        continue  # NaN cannot be written in a condition
                    where = f"{quote_identifier(column)} = :value"
                    found = cube.query(where=where, parameters={"value": value}).to_arrow()
                    expected = [row for row in rows.to_pylist() if row[column] == value]
                    assert row_lines(found.to_pylist()) == row_lines(expected), (name, column)
                    asked += 1
    assert asked > 100
