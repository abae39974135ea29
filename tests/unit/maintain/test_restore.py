"""An earlier version becomes the newest one again."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import CommitConflictError, ConsistencyError, KtkError, VersionGoneError
from ktk_engine.maintain.check import check
from ktk_engine.maintain.cleanup import run_cleanup
from ktk_engine.maintain.remove import remove
from ktk_engine.maintain.versions.restore import plan_restoration, restore, run_restoration
from tests.support.changes import Retention, WriteRequest, build
from tests.support.committed import cube_scope, resolve, snapshot_of

CUBE = cube_scope("c")
SEED = WriteRequest("s", "seed", "c", ("x",), ("p",), indexes=("v",))
OTHER = WriteRequest("e", "enrichment", "c", ("x",))
LATER = WriteRequest("f", "enrichment", "c", ("x",))


def cells(*numbers):
    return pa.table({"p": ["a"] * len(numbers), "x": numbers, "v": [n * 10 for n in numbers]})


def rows(store):
    return Store(store.root).cube("c").query().to_arrow(engine="local").to_pylist()


@pytest.fixture
def grown(store):
    """Versions: seed; enrichment; more cells; another enrichment; the first one removed."""
    build(store, cells(1, 2), SEED)
    build(store, pa.table({"x": [1, 2], "w": [5, 6]}), OTHER)
    build(store, cells(3), SEED, mode="append")
    build(store, pa.table({"x": [1], "u": ["t"]}), LATER)
    remove(store, "c", "e")
    return store


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_rows_columns_and_documents_are_those_of_the_version(grown, version):
    before = Store(grown.root).cube("c", version=version)
    expected = before.query().to_arrow(engine="local").to_pylist()
    restored = Store(grown.root).cube("c").restore(version)
    assert (restored.version, restored.datasets) == (6, before.datasets)
    assert rows(grown) == expected
    assert not check(grown, "c").problems
    head = resolve(grown, CUBE).head
    assert {change.operation for change in head.changes.values()} <= {"restore", "remove"}
    assert head.history["reason"] == f"as version {version} had it"


def test_what_came_in_between_can_be_restored_as_well(grown):
    newest = rows(grown)
    restore(grown, "c", 1)
    restore(grown, "c", 5)
    assert rows(grown) == newest
    build(grown, cells(9), SEED, mode="append")
    assert [row["x"] for row in rows(grown)] == [1, 2, 3, 9]


def test_a_table_and_a_removed_cube(grown):
    table = WriteRequest("t")
    build(grown, pa.table({"a": [1]}), table)
    build(grown, pa.table({"a": ["x"]}), table)
    restore(grown, "t", 1)
    assert snapshot_of(grown, "t").schema.field("a").type == pa.int64()
    remove(grown, "c", cascade=True)
    restore(grown, "c", 2)
    assert [row["w"] for row in rows(grown)] == [5, 6]


def test_nothing_to_restore_is_an_error(grown):
    with pytest.raises(ConsistencyError, match="nothing to restore"):
        restore(grown, "c", 5)
    with pytest.raises(VersionGoneError, match="versions are 1 to 5"):
        restore(grown, "c", 7)


def test_a_cleaned_version_is_refused_and_nothing_changes(grown):
    run_cleanup(grown, CUBE, Retention(timedelta(0), 1))
    before = rows(grown)
    with pytest.raises(KtkError, match="Versions 5 to 6 are left"):
        restore(grown, "c", 2)
    assert rows(grown) == before


def test_a_cleanup_in_between_is_a_conflict(grown):
    plan = plan_restoration(grown, "c", 2)
    run_cleanup(grown, CUBE, Retention(timedelta(0), 1))
    before = rows(grown)
    with pytest.raises(CommitConflictError):
        run_restoration(plan)
    assert rows(grown) == before


def test_a_write_in_between_is_a_conflict(grown):
    plan = plan_restoration(grown, "c", 1)
    build(grown, cells(4), SEED, mode="append")
    with pytest.raises(CommitConflictError, match="got new files by version 6"):
        run_restoration(plan)
    assert [row["x"] for row in rows(grown)] == [1, 2, 3, 4]
