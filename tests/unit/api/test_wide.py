"""Tables of thousands of columns: what changes and queries cost, and what they give."""

from __future__ import annotations

import json
import time

import polars as pl
import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import QueryError
from ktk_engine.plan.statement import usage  # deep: counts reads of a plan

CELLS = {"P": [1, 1, 1, 2, 2], "L": [1, 2, 3, 4, 5]}


def columns(prefix, count):
    return {f"{prefix}{number}": [1, 2, 3, 4, 5] for number in range(count)}


def table_of(folder, count):
    return Store(folder).write_table("t", pa.table(columns("c", count)))


def cube_of(folder, count):
    enrichment = pa.table({**CELLS, **columns("c", count)})
    return _built(folder, pa.table(CELLS), enrichment)


def _built(folder, seed, enrichment):
    return Store(folder).build(
        "k",
        {"s": seed, "e": enrichment},
        seed="s",
        dimension_columns=["L"],
        partition_by=["P"],
    )


def newer(count):
    return pa.table({**CELLS, **columns("c", count)}).slice(0, 1)


CHANGES = {
    "delete": (table_of, lambda table, count: table.delete("c1 = 3")),
    "delete cells": (cube_of, lambda cube, count: cube.delete("c1 = 3", datasets=["e"])),
    "update": (cube_of, lambda cube, count: cube.update({"e": newer(count)}, "L = 1")),
    "append": (cube_of, lambda cube, count: cube.append({"e": newer(count)})),
    "alter": (table_of, lambda table, count: table.alter(add={"x": "double"})),
    "drop": (table_of, lambda table, count: table.alter(drop=["c7"])),
    "query": (cube_of, lambda cube, count: cube.query(where="c1 = 2").to_arrow()),
}


@pytest.mark.parametrize(("built", "change"), CHANGES.values(), ids=CHANGES)
def test_four_times_the_columns_take_less_than_nine_times_the_time(tmp_path, built, change):
    """About four times, and not sixteen; the shorter of two measurements each."""

    def seconds(count):
        best = float("inf")
        for turn in range(2):
            relation = built(tmp_path / f"{count}-{turn}", count)
            began = time.process_time()
            change(relation, count)
            best = min(best, time.process_time() - began)
        return best

    assert seconds(800) < 9 * max(seconds(200), 0.05)


def test_the_plan_of_a_statement_is_read_once(monkeypatch):
    """And not once for each column of the relation."""
    reads, count, read = [], 300, usage._used

    def attribute(number):
        named = {"name": f"c{number}", "exprId": {"id": number}}
        return [{"class": "expressions.AttributeReference", "num-children": 0, **named}]

    def used(value, ids):
        reads.append(value)
        return read(value, ids)

    monkeypatch.setattr(usage, "_used", used)
    chosen = [attribute(number) for number in range(count)]
    nodes = [
        {"class": "a.Project", "num-children": 1, "projectList": chosen, "child": 0},
        {"class": "a.LogicalRelation", "num-children": 0, "output": [*chosen, attribute(count)]},
    ]
    schema = pa.schema({f"c{number}": pa.int64() for number in range(count)})
    found = usage.read_usage(json.dumps(nodes), "UTC", f"c{count}", schema)
    assert found.columns == set(schema.names)
    assert len(reads) < 20 * count


STORED = {
    "f": pa.array([0.5, None, 1.5, 2.5, 3.5], pa.float32()),
    "i": pa.array([1, 2, None, 4, 5], pa.int8()),
    "u": pa.array([1, 2, 3, 4, 5], pa.uint16()),
    "v": pa.array([[1.0, 2.0]] * 4 + [None], pa.list_(pa.float32(), 2)),
    "m": pa.array([[1.5], [], None, [2.5], [3.5]], pa.list_(pa.float32())),
    "d": pa.array(["a", "b", None, "a", "b"]).dictionary_encode(),
    "t": pa.array([1, 2, 3, 4, None], pa.timestamp("ms")),
    "s": pa.array([{"x": 1}] * 5, pa.struct([("x", pa.int16())])),
}
PLAIN = {name: pa.string() if name == "d" else values.type for name, values in STORED.items()}


def of_small_types(folder):
    seed = pa.table({**CELLS, "b": pa.array([1, 2, 3, 4, 5], pa.int16())})
    return _built(folder, seed, pa.table({**CELLS, **STORED}))


@pytest.mark.parametrize(
    "where", [None, "f > 1", "i = 1 or u = 5", "b in (1, 5)", "P = 2", "f > 9"]
)
def test_stored_types_are_those_of_the_files(tmp_path, where):
    cube, names = of_small_types(tmp_path), [*STORED, "b", "L"]
    known = cube.query(names, where).to_arrow()
    query = cube.query(names, where, types="stored")
    found = query.to_arrow(engine="local")
    wanted = pa.schema({**PLAIN, "b": pa.int16(), "L": pa.int64()})
    assert (found.schema, found.to_pylist()) == (wanted, known.to_pylist())
    batches = list(query.to_batches())
    assert {batch.schema for batch in batches} <= {wanted}
    rows = pa.Table.from_batches(batches, wanted).sort_by("L")
    assert rows.to_pylist() == known.to_pylist()
    assert pa.RecordBatchReader.from_stream(query).schema == wanted
    assert query.to_polars()["f"].dtype == pl.Float32 and query.to_polars()["v"].dtype == pl.Array(
        pl.Float32, 2
    )
    assert query.to_pandas()["i"].dtype.pyarrow_dtype == pa.int8()
    assert str(query.to_duckdb().select("f").types[0]) == "FLOAT"


def test_stored_types_hold_the_values_of_all_files(tmp_path):
    cube = of_small_types(tmp_path)
    new = {name: values.slice(0, 1) for name, values in STORED.items()}
    new |= {"f": pa.array([0.1]), "i": pa.array([400], pa.int16()), "v": [[1.0, 2.0, 3.0]]}
    cube = cube.append({"e": pa.table({"P": [1], "L": [1], **new})})
    names = ["f", "i", "v", "u"]
    found = cube.query(names, types="stored").to_arrow()
    assert found.to_pylist() == cube.query(names).to_arrow().to_pylist()
    assert found.schema.types == [pa.float64(), pa.int16(), pa.list_(pa.float64()), pa.uint16()]
    alone = cube.query(names, "P = 2", types="stored").to_arrow()
    assert alone.schema.types == found.schema.types  # whatever is read


F3, F4 = pa.list_(pa.float32(), 3), pa.list_(pa.float32(), 4)
THREE, FOUR = [0.5, 1.5, 2.5], [0.5, 1.5, 2.5, 3.5]
F16, F0 = pa.list_(pa.float16(), 1), pa.list_(pa.float32(), 0)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("one", "other", "stored"),
    [
        ((F3, THREE), (F4, FOUR), pa.list_(pa.float32())),
        ((F3, THREE), (pa.list_(pa.float32()), FOUR), pa.list_(pa.float32())),
        ((F3, THREE), (F16, [1.5]), pa.list_(pa.float32())),
        ((F3, THREE), (F0, []), pa.list_(pa.float32())),
        ((F3, THREE), (pa.list_(pa.float64(), 3), [0.1, 0.2, 0.3]), None),
        ((F3, THREE), (F3, None), F3),
        ((F3, THREE), (pa.list_(pa.float64(), 3), None), None),
        ((F3, None), (F4, None), None),
        ((pa.list_(F3), None), (pa.list_(F4), [None, FOUR]), None),
        ((pa.struct({"v": F3}), {"v": THREE}), (pa.struct({"v": F4}), {"v": FOUR}), None),
        ((pa.list_(F3), [THREE]), (pa.list_(F4), [FOUR]), None),
        ((pa.map_(pa.string(), F3), [("a", THREE)]), (pa.map_(pa.string(), F4), []), None),
        ((pa.binary(3), b"abc"), (pa.binary(4), b"abcd"), pa.binary()),
    ],
    ids=str,
)
def test_vectors_of_other_sizes_are_read_as_they_were_given(tmp_path, one, other, stored, swapped):
    items = [(t, value) for t, value in ((other, one) if swapped else (one, other))]
    rows = [pa.table({"x": [n], "v": pa.array([v], t)}) for n, (t, v) in enumerate(items)]
    cells = [pa.table({"x": [n]}) for n in range(2)]
    cube = Store(tmp_path).build(
        "c", {"cells": cells[0], "more": rows[0]}, seed="cells", dimension_columns=["x"]
    )
    cube = cube.append({"cells": cells[1], "more": rows[1]})
    expected = [value for _, value in items]
    for found in (cube.query(), cube.query(types="stored"), cube.compact().query(types="stored")):
        table = found.to_arrow().sort_by("x")
        assert table["v"].to_pylist() == expected
        assert len(found.to_polars()) == len(found.to_pandas()) == 2
    assert stored is None or table.schema.field("v").type == stored


def test_stored_types_of_a_table_and_of_limits_and_groups(tmp_path):
    store = Store(tmp_path)
    table = store.write_table("t", pa.table({**CELLS, **STORED}), partition_by=["P"])
    found = table.query(["f", "i"], limit=2, types="stored").to_arrow()
    assert found.schema.types == [pa.float32(), pa.int8()]
    cube = of_small_types(tmp_path / "c")
    groups = list(cube.query(["f", "P"], partition_by=["P"], types="stored").iter_groups())
    assert [rows.schema.types for _, rows in groups] == [[pa.float32(), pa.int64()]] * 2
    with pytest.raises(QueryError, match="no types 'files'"):
        cube.query(types="files")


def test_spark_frames_refuse_stored_types(tmp_path):
    query = of_small_types(tmp_path).query(["f"], partition_by=["P"], types="stored")
    for ask in (query.to_spark, lambda: next(query.iter_spark_groups())):
        with pytest.raises(QueryError, match=r"types='stored'. Leave that out, or .* `to_arrow`"):
            ask()
