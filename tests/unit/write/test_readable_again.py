"""Whoever can write can read back: what no reader takes is refused before anything is written."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings

from ktk_engine import Store
from ktk_engine.errors import TypeClassError
from tests.support.stores import tree

SOME = settings(
    deadline=None,
    max_examples=int(os.environ.get("KTK_EXAMPLES", "40")),
    suppress_health_check=list(HealthCheck),
)
WRAPPED = {
    "list": pa.list_,
    "struct": lambda t: pa.struct([("a", t)]),
    "map": lambda t: pa.map_(pa.string(), t),
}
LEVELS = {"list": 1, "struct": 1, "map": 2}


def nested(kind: str, depth: int) -> pa.DataType:
    t = pa.int64()
    for _ in range(depth):
        t = WRAPPED[kind](t)
    return t


def value_of(t: pa.DataType) -> object:
    """One value that goes down to the bottom of a type."""
    if pa.types.is_list(t):
        return [value_of(t.value_type)]
    if pa.types.is_map(t):
        return [("k", value_of(t.item_type))]
    if pa.types.is_struct(t):
        return {field.name: value_of(field.type) for field in t}
    return 1


def rows_of(t: pa.DataType) -> pa.Table:
    return pa.table({"k": [1], "v": pa.array([value_of(t)], t)})


@pytest.mark.parametrize("kind", WRAPPED)
def test_the_deepest_types_are_read_again(tmp_path, kind):
    rows = rows_of(nested(kind, 32 // LEVELS[kind]))
    table = Store(tmp_path).write_table("t", rows)
    assert Store(tmp_path).table("t").query().to_arrow().to_pylist() == rows.to_pylist()
    assert next(iter(table.query().to_batches())).num_rows == 1
    assert not table.check(deep=True)["problems"]
    table.compact()
    assert Store(tmp_path).table("t").query(where="v is not null").count() == 1


@pytest.mark.parametrize("depth", [33, 66, 100, 130, 600, 3_000])
@pytest.mark.parametrize("kind", WRAPPED)
def test_deeper_types_are_refused_and_nothing_is_written(tmp_path, kind, depth):
    store = Store(tmp_path)
    store.write_table("t", pa.table({"k": [1]}))
    before = tree(tmp_path)
    t = nested(kind, depth)
    rows = pa.table({"k": [1], "v": pa.nulls(1, t)})
    for write in (
        lambda: store.write_table("new", rows),
        lambda: store.write_table("t", rows, mode="overwrite"),
        lambda: store.write_table("t", rows, mode="append"),
        lambda: store.write_table("t", rows, mode="merge", key=["k"]),
        lambda: store.table("t").alter(add={"v": t}),
        lambda: store.build("c", {"seed": rows}, dimension_columns=["k"]),
    ):
        with pytest.raises(TypeClassError, match=r"(?s)\bv\b.*more than 32 levels of nesting"):
            write()
    assert tree(tmp_path) == before
