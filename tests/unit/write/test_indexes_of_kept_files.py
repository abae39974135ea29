"""An index that is added to a dataset, or taken from it, by a run that keeps its files."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from ktk_engine.errors import DataError
from tests.support.changes import WriteRequest, build
from tests.support.committed import check, snapshot_of, version_of
from tests.support.documents import stored_index

TABLE = WriteRequest("t")
SEED = WriteRequest("cells", "seed", "c", ("L",))
APPEND = "append"


def indexed(store, target) -> dict[str, list[tuple]]:
    """Each index of a dataset as sorted pairs of a value and the number of its file."""
    snapshot = snapshot_of(store, target.uuid)
    positions = {label: at for at, label in enumerate(snapshot.labels)}
    return {
        name: sorted(
            (pair["value"], positions[pair["label"]])
            for pair in stored_index(store, key).to_pylist()
        )
        for name, key in snapshot.indices.items()
    }


def test_a_new_index_knows_the_files_that_were_there(store):
    build(store, pa.table({"a": pa.array([1, 2], pa.int32())}), TABLE)
    build(store, pa.table({"a": pa.array([2, None], pa.int64())}), TABLE, mode=APPEND)
    with_index = replace(TABLE, indexes=("a",))
    done = build(store, pa.table({"a": [3]}), with_index, mode=APPEND)
    assert indexed(store, TABLE) == {"a": [(1, 0), (2, 0), (2, 1), (3, 2)]}
    assert "index on a built" in str(done)
    done = build(store, pa.table({"a": [1]}), with_index, mode=APPEND)
    assert (1, 3) in indexed(store, TABLE)["a"]
    assert "index" not in str(done)
    assert check(store, "t").problems == ()


def test_an_index_that_is_no_longer_configured_goes(store):
    build(store, pa.table({"a": [1], "b": [1]}), replace(TABLE, indexes=("a", "b")))
    only_b = replace(TABLE, indexes=("b",))
    done = build(store, pa.table({"a": [2], "b": [2]}), only_b, mode=APPEND)
    assert indexed(store, TABLE) == {"b": [(1, 0), (2, 1)]}
    assert "index on a dropped" in str(done)


def test_files_that_are_replaced_are_not_in_it(store):
    by_p = replace(TABLE, partition_by=("p",))
    build(store, pa.table({"p": [1, 2], "a": [1, 2]}), by_p)
    rows = pa.table({"p": [2], "a": [3]})
    build(store, rows, replace(by_p, indexes=("a",)), mode="partitions")
    assert [value for value, _ in indexed(store, TABLE)["a"]] == [1, 3]


def test_in_a_cube_no_kept_row_may_lack_the_value(store):
    build(store, pa.table({"L": [1, 2], "a": [1, None]}), SEED)
    rows, with_index = pa.table({"L": [3], "a": [3]}), replace(SEED, indexes=("a",))
    with pytest.raises(DataError, match=r"(?s)1 row has no value in `a`.*give these rows a value"):
        build(store, rows, with_index, mode=APPEND)
    assert version_of(store, SEED.scope) == 1


def test_nor_may_they_lack_a_new_column_that_is_indexed(store):
    build(store, pa.table({"L": [1], "v": [1]}), SEED)
    rows = pa.table({"L": [3], "v": [3], "a": [3]})
    target = replace(SEED, indexes=("a",), on_schema_change="append_new_columns")
    with pytest.raises(DataError, match=r"1 row has no value in `a`"):
        build(store, rows, target, mode=APPEND)


def test_a_dimension_column_of_the_seed_dataset_loses_its_index_and_gets_it_back(store):
    build(store, pa.table({"L": [1]}).append_column("v", [[1]]), SEED)
    without = replace(SEED, suppress_index_on=("L",))
    build(store, pa.table({"L": [2], "v": [1]}), without, mode=APPEND)
    assert indexed(store, SEED) == {}
    build(store, pa.table({"L": [3], "v": [1]}), SEED, mode=APPEND)
    assert indexed(store, SEED) == {"L": [(1, 0), (2, 1), (3, 2)]}
