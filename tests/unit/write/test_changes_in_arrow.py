"""Changes of rows that Python programs make without Spark."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import ConfigurationError
from ktk_engine.gate.constraint import CONSTRAINTS  # deep: only dbt writes constraints
from tests.support.changes import ChangeSet, Constraint, DatasetChange, PendingCommit, commit
from tests.support.committed import resolve, scope_of
from tests.support.stores import LocalStore, tree

ROWS = pa.table({"k": [1, 2, 3], "v": pa.array([10, 20, 30], pa.int16())})


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    store.write_table("t", ROWS)
    return store


@pytest.fixture
def constrained(store, tmp_path):
    """A table as a model's contract leaves it, which Spark verifies."""

    def change(base, attempt):
        unique = Constraint("unique", ("v",))
        return replace(base, properties={**base.properties, CONSTRAINTS: [unique.as_dict()]})

    changes = (DatasetChange("t", "properties", change, frozenset()),)
    commit(resolve(LocalStore(tmp_path), scope_of("t")), ChangeSet(PendingCommit(), changes))
    return store


def test_rows_that_break_a_constraint_are_not_merged_unseen(constrained, tmp_path):
    new = pa.table({"k": [4], "v": pa.array([10], pa.int16())})
    before = tree(tmp_path)
    for mode, key in (("append", ()), ("merge", ("k",))):
        with pytest.raises(ConfigurationError, match="Spark verifies constraints"):
            constrained.write_table("t", new, mode, key=key)
    assert tree(tmp_path) == before


def test_rows_of_a_table_with_constraints_may_go(constrained):
    constrained.table("t").delete("k > 1")
    assert constrained.table("t").query().to_arrow().to_pylist() == [{"k": 1, "v": 10}]


def test_columns_in_another_order_leave_the_order_of_the_table(store):
    new = pa.table({"v": pa.array([31, 40], pa.int16()), "k": [3, 4]})
    store.write_table("t", new, "merge", key=["k"])
    found = store.table("t").query().to_arrow()
    assert found.column_names == ["k", "v"]
    assert sorted(found["v"].to_pylist()) == [10, 20, 31, 40]


def test_rows_of_cells_without_exact_equality_may_go(tmp_path):
    rows = pa.table({"f": [0.0, -0.0, float("nan")], "L": [0, 1, 2], "v": [1, 2, 3]})
    cube = Store(tmp_path).build("c", {"seed": rows}, dimension_columns=["f", "L"])
    cube = cube.delete("v = 2")
    assert sorted(cube.query().to_arrow()["v"].to_pylist()) == [1, 3]


# Columns without values, and the values that a merge gives them.
WITHOUT_TYPE = {
    "null": (pa.null(), 5),
    "list": (pa.list_(pa.null()), [5]),
    "struct": (pa.struct({"a": pa.null(), "b": pa.int8()}), {"a": 5, "b": 300}),
    "map": (pa.map_(pa.string(), pa.null()), [("a", 5)]),
}


@pytest.mark.parametrize("kind", WITHOUT_TYPE)
def test_a_column_gets_its_type_by_a_merge(tmp_path, kind):
    t, value = WITHOUT_TYPE[kind]
    typed = pa.array([value], pa.map_(pa.string(), pa.int16()) if kind == "map" else None)
    store = Store(tmp_path)
    for number in (1, 2):
        store.write_table("t", pa.table({"k": [number], "x": pa.nulls(1, t)}))
    store.write_table("t", pa.table({"k": [2], "x": typed}), "merge", key=["k"])
    store.write_table("t", pa.table({"k": [3], "x": pa.nulls(1, t)}), "merge", key=["k"])
    found = store.table("t").query().to_arrow().sort_by("k")
    assert found["x"].to_pylist() == [None, value, None]
