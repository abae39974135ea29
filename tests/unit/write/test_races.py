"""What another commit does between the reading of a state and the commit that is based on it."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import CommitConflictError, KtkError
from tests.support.changes import Retention, WriteRequest, build, remove, run_cleanup
from tests.support.committed import cube_scope, resolve, snapshot_of, version_of
from tests.support.queries import read_rows

TABLE = WriteRequest("t", partition_by=("P",), on_schema_change="append_new_columns")
ROWS = pa.table({"P": ["a", "b"], "v": [1, 2]})
OTHER = pa.table({"P": ["c"], "v": [2]})
APPEND = "append"


def test_columns_that_changed_meanwhile(store):
    build(store, ROWS, TABLE)
    state = resolve(store, TABLE.scope)
    build(store, ROWS.append_column("w", pa.array([1, 2])), TABLE, mode=APPEND)
    with pytest.raises(CommitConflictError, match="its columns changed"):
        build(store, ROWS, TABLE, mode=APPEND, state=state)
    assert version_of(store, TABLE.scope) == 2


def test_two_that_make_the_same_dataset(store):
    nothing = resolve(store, TABLE.scope)
    build(store, ROWS, TABLE)
    with pytest.raises(CommitConflictError):
        build(store, ROWS.slice(1), TABLE, state=nothing)
    assert snapshot_of(store, "t").rows == 2


@pytest.mark.parametrize(
    ("meanwhile", "rows"),
    [
        (lambda face: face.write_table("t", ROWS, "append"), 4),
        (lambda face: face.write_table("t", OTHER, "merge", key=["v"]), 2),
        (lambda face: face.table("t").delete("v = 1 or P = 'b'"), 0),
    ],
)
@pytest.mark.parametrize("mode", [None, "nothing"])
def test_what_another_commit_did_is_not_replaced_unseen(store, mode, meanwhile, rows):
    build(store, ROWS, TABLE)
    state = resolve(store, TABLE.scope)
    meanwhile(Store(store.root))
    with pytest.raises(CommitConflictError, match="this run would undo that"):
        build(store, ROWS, TABLE, mode=mode, state=state)
    assert snapshot_of(store, "t").rows == rows


@pytest.mark.parametrize("mode", ["append", "partitions"])
def test_a_dataset_that_was_made_anew_meanwhile(store, mode):
    build(store, ROWS, TABLE)
    state = resolve(store, TABLE.scope)
    remove(store, "t")
    build(store, ROWS.slice(1), TABLE)
    with pytest.raises(CommitConflictError, match="what it started from is gone"):
        build(store, ROWS, TABLE, mode=mode, state=state)
    assert snapshot_of(store, "t").rows == 1


def test_a_reader_beside_a_clean_up(store):
    """Within the retention it reads on; with none it is told which file is gone."""
    seed = WriteRequest("s", "seed", "c", ("L",), ("P",))
    rows = pa.table({"P": ["a"], "L": [1]})
    build(store, rows, seed)
    cube = Store(store.root).cube("c")
    build(store, pa.table({"P": ["a"], "L": [2]}), seed)
    run_cleanup(store, cube_scope("c"), Retention())
    (dataset,) = cube.query().plan.datasets
    assert read_rows(store, dataset.snapshot, dataset.files, ["P", "L"]).num_rows == 1
    run_cleanup(store, cube_scope("c"), Retention(timedelta(0), 1))
    (key,) = dataset.files["key"].to_pylist()
    with pytest.raises(KtkError, match=key.rpartition("/")[2]):
        read_rows(store, dataset.snapshot, dataset.files, ["P", "L"])
    assert snapshot_of(store, "c++s").rows == 1
