"""What several files of other writers hold byte for byte is decoded once, and only that."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from ktk_engine.errors import FormatError
from ktk_engine.files.data_file import chunk_ranges  # deep: row groups by the byte
from ktk_engine.local.answer import LocalEngine
from ktk_engine.local.read import decoded_columns
from tests.support.documents import CubeSpecification
from tests.support.foreign_cubes import write_files
from tests.support.queries import FooterCache, read_row_groups

ROWS = 60
CELLS = {
    "numbers": pa.array(range(ROWS)),
    "texts": pa.array([f"ü{n:03}" for n in range(ROWS)]),
    "few texts": pa.array([f"t{n % 9}" for n in range(ROWS)]).dictionary_encode(),
    "dates": pa.array([date(2020, 1, 1 + n % 28) for n in range(ROWS)]),
    "decimals": pa.array([Decimal(n) for n in range(ROWS)], pa.decimal128(9, 2)),
    "floats": pa.array([float("nan") if n == 3 else -0.0 if n == 2 else n for n in range(ROWS)]),
    "nulls": pa.array([None if n % 7 == 0 else n for n in range(ROWS)]),
    "flags": pa.array([n % 2 == 0 for n in range(ROWS)]),
}


@pytest.fixture
def decoded(monkeypatch):
    """Which columns are decoded, dataset by dataset."""
    found = []

    def spy(store, key, metadata, schema, digest, columns, *rest):
        found.extend((key.partition("/")[0].partition("++")[2], name) for name in columns)
        return read_row_groups(store, key, metadata, schema, digest, columns, *rest)

    monkeypatch.setattr("ktk_engine.local.read.stored_rows.read_row_groups", spy)
    return found


def cube(store, seed, *others, groups=20):
    specification = CubeSpecification("c", ("L", "M"))
    write_files(store, specification, "seed", [seed], row_group_rows=groups)
    for number, rows in enumerate(others):
        write_files(store, specification, f"e{number}", [rows], row_group_rows=groups)
    return Store(store.root).cube("c")


def rows_of(cells, **payload):
    return pa.table({"L": cells, "M": range(len(cells)), **payload})


def answered(store, query, threads=2):
    return LocalEngine(store, FooterCache(), threads=threads).table(query.plan)


def differently(query, store, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(decoded_columns.DecodedColumns, "cached", lambda *_: {})
        return answered(store, query)


@pytest.mark.parametrize("where", [None, "v > 30 and v < 50", "a = 3"])
@pytest.mark.parametrize("kind", CELLS)
def test_equal_columns_are_decoded_once(store, decoded, monkeypatch, kind, where):
    cells = CELLS[kind]
    given = [rows_of(cells, **{n: range(i, ROWS + i)}) for i, n in enumerate(("v", "a", "b"))]
    query = cube(store, *given).query(where=where)
    found = answered(store, query)
    twice = [item for item in decoded if item[0] != "seed" and item[1] in ("L", "M")]
    assert where == "a = 3" or twice == []
    decoded.clear()
    expected = differently(query, store, monkeypatch)
    assert str(found.to_pylist()) == str(expected.to_pylist()) and found.num_rows > 0
    assert {name for _, name in decoded} == {"L", "M", "v", "a", "b"}


def test_columns_of_one_size_with_other_values_are_decoded(store, decoded):
    """Integers without compression take the same room whatever they are."""
    seed = rows_of(pa.array(range(ROWS)), v=range(ROWS))
    other = rows_of(pa.array([*range(ROWS - 1), 1000]), a=range(ROWS))
    found = answered(store, cube(store, seed, other).query(["v", "a"]))
    assert found["a"].to_pylist() == [*range(ROWS - 1), None]
    assert ("e0", "L") in decoded and ("e0", "M") not in decoded


@pytest.mark.parametrize("t", [pa.int32(), pa.uint64(), pa.int64()])
def test_other_types_are_decoded(store, decoded, t):
    seed = rows_of(pa.array(range(ROWS)), v=range(ROWS))
    other = rows_of(pa.array(range(ROWS), t), a=range(ROWS))
    query = cube(store, seed, other).query(["v", "a"]) if t != pa.uint64() else None
    if query is None:  # of another class
        seed = rows_of(pa.array(range(ROWS), pa.uint8()), v=range(ROWS))
        query = cube(store, seed, other).query(["v", "a"])
    assert answered(store, query)["a"].to_pylist() == list(range(ROWS))
    assert (("e0", "L") in decoded) == (t != pa.int64())


def test_names_with_dots_are_not_taken_for_fields(store, decoded):
    """In parquet a column `a.b` and a field `b` of a column `a` have the same path."""
    cells = pa.array(range(ROWS))
    struct = pa.array([{"b": n} for n in range(ROWS)])
    names = {"a.b": cells, "M": pa.array(range(ROWS))}
    specification = CubeSpecification("c", ("a.b", "M"))
    for name, given in (("seed", {"a": struct, **names}), ("e", {**names, "x": cells})):
        write_files(store, specification, name, [pa.table(given)], row_group_rows=20)
    query = Store(store.root).cube("c").query(["a", "x"], "`a.b` > 3")
    found = answered(store, query)
    assert found.to_pylist() == [{"a": {"b": n}, "x": n} for n in range(4, ROWS)]


def test_repeated_cells_give_every_pair(store):
    cells = pa.array([0, 0, 1])
    seed = pa.table({"L": cells, "M": [0, 0, 0], "v": [1, 2, 3]})
    other = pa.table({"L": cells, "M": [0, 0, 0], "a": [10, 20, 30]})
    found = answered(store, cube(store, seed, other).query(["v", "a"]))
    pairs = sorted(zip(found["v"].to_pylist(), found["a"].to_pylist(), strict=True))
    assert pairs == [(1, 10), (1, 20), (2, 10), (2, 20), (3, 30)]


def test_damage_in_the_other_file_is_not_hidden(store, decoded):
    """Other writers' pages have no checksums: what the file holds counts."""
    seed = rows_of(pa.array(range(ROWS)), v=range(ROWS))
    built = cube(store, seed, rows_of(pa.array(range(ROWS)), a=range(ROWS)))
    (key,) = (i.key for i in store.list("c++e0/table/") if i.key.endswith(".parquet"))
    content = bytearray(store.get(key))
    ((start, length),) = chunk_ranges(pq.read_metadata(pa.BufferReader(content)), ["L"], [1])
    content[start + length // 2] ^= 0xFF
    store.put(key, bytes(content))
    try:
        found = answered(store, built.query(["v", "a"]))
    except FormatError as error:
        assert "e0" in str(error)
    else:
        assert found["a"].null_count >= 1
    assert ("e0", "L") in decoded


def test_many_threads_give_one_answer(store):
    given = [rows_of(pa.array(range(ROWS)), **{n: range(ROWS)}) for n in "vabdefgh"]
    query = cube(store, *given, groups=7).query(["v", "a", "b", "h"])
    for _ in range(10):
        table = answered(store, query, threads=16)
        assert all(column.to_pylist() == list(range(ROWS)) for column in table.columns)
