"""Whoever can write can read back: what no reader takes is refused before anything is written."""

from __future__ import annotations

import os
import string
import time

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ktk_engine import Store
from ktk_engine.errors import DataError, KtkError, TypeClassError
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


@pytest.mark.parametrize("values", [{"a\0b": [1]}, {"s": [{"a\0": 1}]}, {"s": [[{"\0": 1}]]}])
def test_names_that_java_would_cut_are_refused(tmp_path, values):
    with pytest.raises(TypeClassError, match="cannot hold the character NUL"):
        Store(tmp_path).write_table("t", pa.table(values))
    assert not tree(tmp_path)


LONGEST = "n" * 222


def test_the_longest_names_are_read_and_published(tmp_path):
    store = Store(tmp_path)
    table = store.write_table(LONGEST, pa.table({"a": [1]}))
    for _ in range(2):
        table = store.write_table(LONGEST, pa.table({"a": [1]}), mode="append")
    table.publish()
    assert Store(tmp_path).table(LONGEST).query().count() == 3
    assert not table.check(deep=True)["problems"]
    assert store.tables() == [LONGEST]
    cube = "c" * 110
    made = store.build(cube, {"seed": pa.table({"a": [1]})}, dimension_columns=["a"])
    made.extend({"e" * 110: pa.table({"a": [1], "b": [2]})})
    assert store.cube(cube).query().count() == 1


@pytest.mark.parametrize("length", [223, 230, 240, 250, 256, 2_000])
def test_longer_names_are_refused_and_nothing_is_written(tmp_path, length):
    store, rows = Store(tmp_path), pa.table({"a": [1]})
    table = store.write_table("t", rows)
    cube = store.build("c", {"seed": rows}, dimension_columns=["a"])
    before, name = tree(tmp_path), "n" * length
    half = "n" * (length // 2)
    for write in (
        lambda: store.write_table(name, rows),
        lambda: store.build(name, {"seed": rows}, dimension_columns=["a"]),
        lambda: cube.extend({name: rows}),
        lambda: cube.copy_to(Store(tmp_path), half, rename={"seed": half}),
        lambda: table.rename(name),
        lambda: cube.rename(name),
    ):
        with pytest.raises(KtkError, match="at most 222"):
            write()
    assert tree(tmp_path) == before


def test_thousands_of_columns_cost_linear_time(tmp_path):
    """Two rows of 5,000 columns; where time grew with the square of them, it took minutes."""
    columns = {f"column_{i:05}": [i, None] if i % 2 else [str(i), "x"] for i in range(5_000)}
    rows, start = pa.table(columns), time.process_time()
    store = Store(tmp_path)
    store.write_table("t", rows)
    table = store.write_table("t", rows, mode="append")
    assert table.query().to_arrow().select(rows.column_names).slice(0, 2).equals(rows)
    assert table.query(where="column_00001 = 1").count() == 2
    assert table.compact().query().count() == 4
    assert time.process_time() - start < 30


FOLDER = {"partition_by": "partition", "indexes": "index"}


@pytest.mark.parametrize("role", FOLDER)
@pytest.mark.parametrize("letter", ["x", "ü", " "])
def test_names_of_columns_that_are_folders_have_room_or_are_refused(tmp_path, role, letter):
    size = 1 if letter == "x" else 3 * len(letter.encode())
    most = (253 if role == "partition_by" else 255) // size
    store = Store(tmp_path)
    for count, fits in ((most, True), (most + 1, False), (2_000, False)):
        name, before = letter * count, tree(tmp_path)
        rows = pa.table({name: ["1"], "a": [1]})
        if fits:
            store.write_table("t", rows, **{role: [name]})
            assert Store(tmp_path).table("t").query().to_arrow().to_pylist() == rows.to_pylist()
            continue
        with pytest.raises(TypeClassError, match=f"a {FOLDER[role]} column's name is that of a"):
            store.write_table("u", rows, **{role: [name]})
        assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("values", "columns", "fits"),
    [
        (["x" * 253], "p", True),
        (["x" * 254], "p", False),
        (["ü" * 42], "p", True),
        (["ü" * 43], "p", False),
        ([" " * 300], "p", False),
        (["x" * 200] * 3, "pqr", True),
        (["x" * 250] * 3, "pqr", False),
    ],
)
def test_values_of_folders_have_room_or_are_refused(tmp_path, values, columns, fits):
    store = Store(tmp_path)
    short = dict.fromkeys(columns, "a")
    long = dict(zip(columns, values, strict=True))
    rows = pa.Table.from_pylist([{**short, "v": 1}, {**long, "v": 2}, {**long, "v": 3}])
    if fits:
        table = store.write_table("t", rows, partition_by=list(columns))
        table.publish()
        found = Store(tmp_path).table("t").query(where=f"p = '{values[0]}'").to_arrow()
        assert sorted(found["v"].to_pylist()) == [2, 3]
        return
    with pytest.raises(
        DataError, match=r"2 rows have a value in `p`.* too long for a path"
    ) as said:
        store.write_table("t", rows, partition_by=list(columns))
    assert "invalid key" not in str(said.value)
    assert not tree(tmp_path)


NAMES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.text(string.printable, max_size=8),
    st.sampled_from(
        ["", " ", ".", "..", "a.b", "a`b", 'a"b', "\x00", "\n", "ü" * 500, "x" * 70_000]
    ),
)
TYPES = st.recursive(
    st.sampled_from([pa.int64(), pa.string(), pa.bool_(), pa.date32()]),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(lambda t: pa.map_(pa.string(), t)),
        st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(
            lambda fields: pa.struct(list(fields.items()))
        ),
    ),
    max_leaves=20,
)


@SOME
@given(
    st.dictionaries(NAMES, st.tuples(TYPES, st.integers(0, 36)), min_size=1, max_size=4), st.data()
)
def test_any_schema_is_read_again_or_refused(tmp_path_factory, columns, data):
    """Names, types and depths at random: what is committed is read, or the store is as it was."""
    root = tmp_path_factory.mktemp("store")
    arrays = {}
    for name, (t, deeper) in columns.items():
        for _ in range(deeper):
            t = pa.list_(t)
        arrays[name] = pa.nulls(1, t)
    arrays["k"] = pa.array([1])
    role = data.draw(st.sampled_from(["none", "partition_by", "indexes"]))
    layout = {} if role == "none" else {role: ["k"]}
    rows = pa.table(arrays)
    try:
        Store(root).write_table("t", rows, **layout)
    except KtkError:
        assert not tree(root)
        return
    table = Store(root).table("t")
    found = table.query().to_arrow()
    assert found.select(rows.column_names).to_pylist() == rows.to_pylist()
    assert not table.check(deep=True)["problems"]
    table.query(where="k = 1").to_arrow()
    Store(root).write_table("t", rows, mode="append")
    assert Store(root).table("t").compact().query().count() == 2
