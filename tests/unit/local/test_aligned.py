"""Datasets whose files hold the seed dataset's cells are put next to it without comparing any."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import date
from decimal import Decimal
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktk_engine import Store
from ktk_engine.errors import FormatError
from ktk_engine.files.cells_digest import CellsDigest  # deep: counted
from ktk_engine.local.answer import LocalEngine
from ktk_engine.local.read import dataset_rows
from ktk_engine.local.tasks import tasks
from tests.support.changes import WriteRequest, build
from tests.support.queries import FooterCache, read_row_groups
from tests.support.random_cubes import examples
from tests.support.stores import LocalStore

WHERE = ("", "v > 5", "a > 20", "L > 3 and L < 9", "P = 1", "v in (3, 11)", "v > 5 or a = 0")


def write(store, name, rows, row_group_rows=131_072):
    dimensions = ("L", "M")
    role = "seed" if name == "seed" else "enrichment"
    target = WriteRequest(
        name, role, "c", dimensions, ("P",), (), dimensions, row_group_rows=row_group_rows
    )
    build(store, rows, target)


def cells(numbers):
    return {
        "P": [n % 3 for n in numbers],
        "L": [n // 3 for n in numbers],
        "M": [f"m{n % 2}" for n in numbers],
    }


def plan_of(store, columns=None, where=None):
    return Store(store.root).cube("c").query(columns, where or None).plan


def aligned(store, **question):
    """For each task, the enrichments that are aligned."""
    found = tasks(store, FooterCache(), plan_of(store, **question), None, 2)
    return [[item.dataset for item in task.datasets if item.aligned] for task in found]


def compared(*_):
    return None


def slices(block_rows):
    """Read each task in slices, in blocks of `block_rows` rows; None reads it in one piece."""
    if block_rows is None:
        return nullcontext()
    limits = {"_WHOLE_BYTES": 1, "_COLUMN_BYTES": 0, "_SLICE_BYTES": 200, "_BLOCK_ROWS": block_rows}
    return patch.multiple("ktk_engine.local.stream", **limits)


@given(
    numbers=st.sets(st.integers(0, 40), min_size=1),
    others=st.sets(st.integers(0, 40), min_size=1),
    groups=st.tuples(*[st.integers(1, 6)] * 3),
    most=st.sampled_from([3, 1_000]),
    columns=st.sets(st.sampled_from(["P", "L", "M", "v", "a", "b"]), min_size=1),
    block_rows=st.sampled_from([1, 4, None]),
)
@examples(15)
def test_gives_the_same_rows(tmp_path_factory, numbers, others, groups, most, columns, block_rows):
    store = LocalStore(tmp_path_factory.mktemp("aligned") / "a")
    same, own = sorted(numbers), sorted(others)
    write(store, "seed", pa.table({**cells(same), "v": same}), groups[0])
    write(store, "a", pa.table({**cells(same), "a": [3 * n for n in same]}), groups[1])
    write(store, "b", pa.table({**cells(own), "b": [5 * n for n in own]}), groups[2])
    engine, names = LocalEngine(store, FooterCache(), threads=2), sorted(columns)
    with patch("ktk_engine.local.tasks._TASK_ROWS", most), slices(block_rows):
        assert {"a"} <= set(aligned(store)[0]) <= {"a", "b"}
        for where in WHERE:
            plan = plan_of(store, names, where)
            found, count = engine.table(plan), engine.count(plan)
            with patch("ktk_engine.local.tasks._aligned", compared):
                assert found.equals(engine.table(plan)) and count == engine.count(plan)


@pytest.fixture
def read(monkeypatch):
    """Which columns are read of which dataset."""
    found = set()

    def spy(store, key, metadata, schema, digest, columns, *rest):
        found.add((key.partition("/")[0].partition("++")[2], *sorted(columns)))
        return read_row_groups(store, key, metadata, schema, digest, columns, *rest)

    monkeypatch.setattr("ktk_engine.local.read.stored_rows.read_row_groups", spy)
    return found


def two(store, **columns):
    rows = cells(range(12))
    write(store, "seed", pa.table({**rows, "v": range(12)}))
    write(store, "a", pa.table({**rows, "a": range(12), **columns}))


def test_no_cell_is_read_that_nobody_asked_for(store, read):
    two(store)
    engine = LocalEngine(store, FooterCache())
    assert sum(batch.num_rows for batch in engine.batches(plan_of(store, ["v", "a"]))) == 12
    assert read == {("seed", "v"), ("a", "a")}


@pytest.mark.parametrize(("where", "rows"), [(None, 400), ("v >= 390", 10), ("L < 7", 14)])
def test_slices_compare_no_cell(store, where, rows):
    numbers = [n - n % 8 + (3 * n) % 8 for n in range(400)]
    keys = {
        "P": [0] * 400,
        "L": [n // 2 for n in range(400)],
        "M": [f"m{n % 2}" for n in range(400)],
    }
    write(store, "seed", pa.table({**keys, "v": range(400)}), 50)
    write(store, "a", pa.table({**keys, "a": numbers}), 64)
    write(store, "b", pa.table({**keys, "b": numbers}), 400)
    plan = plan_of(store, ["v", "a", "b"], where)
    with slices(16), patch("ktk_engine.local.join_sorted.match", side_effect=AssertionError):
        parts = list(LocalEngine(store, FooterCache()).batches(plan))
    found = pa.Table.from_batches(parts)
    assert len(parts) > 1 or rows < 16
    assert found.num_rows == rows
    assert found["a"].to_pylist() == [numbers[n] for n in found["v"].to_pylist()]
    assert found["a"].equals(found["b"])


def test_wide_partitions_are_put_together_by_bytes(store, monkeypatch):
    for name in ("seed", "a", "b"):
        write(store, name, pa.table({**cells(range(120)), name: range(120)}))
    sizes = {}
    for limit in (1 << 20, 120 * 3 * 24):
        monkeypatch.setattr("ktk_engine.local.tasks._TASK_BYTES", limit)
        sizes[limit] = [len(names) for names in aligned(store)]
    assert list(map(len, sizes.values())) == [1, 3]


def test_a_condition_reads_what_it_needs(store, read):
    two(store)
    engine = LocalEngine(store, FooterCache())
    found = [row for b in engine.batches(plan_of(store, ["a"], "v = 7")) for row in b.to_pylist()]
    assert found == [{"a": 7}]
    assert read == {("seed", "v"), ("a", "a")}


def test_rows_in_equal_row_groups_need_no_places(store, monkeypatch):
    rows = {"P": [0] * 40, "L": range(40), "M": ["m"] * 40}
    write(store, "seed", pa.table({**rows, "v": range(40)}), 8)
    write(store, "a", pa.table({**rows, "a": range(40)}), 8)
    write(store, "b", pa.table({**rows, "b": range(40)}), 5)
    placed, real = [], dataset_rows._places
    monkeypatch.setattr("ktk_engine.local.tasks._TASK_ROWS", 16)
    monkeypatch.setattr(dataset_rows, "_places", lambda *a: placed.append(a) or real(*a))
    for where in (None, "v > 3 and v < 30", "L > 3 and L < 30"):
        for names, number in ((["v", "a"], 0), (["v", "b"], 1)):
            placed.clear()
            plan = plan_of(store, names, where)
            found = LocalEngine(store, FooterCache(), threads=2).table(plan)
            expected = list(range(4, 30) if where else range(40))
            assert found[0].to_pylist() == found[1].to_pylist() == expected
            assert bool(placed) == bool(number)


def test_other_cells_are_compared(store):
    two(store, L=[n // 3 + (n == 11) for n in range(12)])
    assert aligned(store) == [[]]
    found = Store(store.root).cube("c").query(["v", "a"], "v >= 10").to_arrow(engine="local")
    assert found["a"].to_pylist() == [10, None]


def test_rows_that_were_added_are_compared(store):
    two(store)
    cube = Store(store.root).cube("c")
    cube.append({"a": pa.table({"P": [0], "L": [0], "M": ["m0"], "a": [100]})})
    assert aligned(store) == [[]]
    found = Store(store.root).cube("c").query(["v", "a"], "v <= 1").to_arrow(engine="local")
    assert sorted(found["a"].to_pylist()) == [1, 100]


def test_a_partition_that_is_missing_is_compared(store):
    two(store)
    Store(store.root).cube("c").remove_partitions("P = 1", ["a"])
    assert aligned(store) == [[]]
    assert aligned(store, where="P = 2") == [["a"]]


@pytest.mark.parametrize("where", [None, "r = 'b'"])
def test_files_that_differ_in_another_partition_column_are_compared(store, where):
    rows = cells(range(12))
    twice = [
        pa.table({**rows, "r": [name] * 12, "a": [sign * n for n in range(12)]})
        for name, sign in (("a", 1), ("b", -1))
    ]
    cube = Store(store.root).build(
        "c",
        {"seed": pa.table({**rows, "v": range(12)}), "a": pa.concat_tables(twice)},
        dimension_columns=["L", "M"],
        partition_by=["P"],
        partition_on={"a": ["P", "r"]},
    )
    assert set(map(tuple, aligned(store))) == {()}
    found = cube.query(["v", "r", "a"], where).to_arrow(engine="local").to_pylist()
    expected = [{"v": n, "r": r, "a": n if r == "a" else -n} for n in range(12) for r in "ab"]
    if where:
        expected = expected[1::2]
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_a_row_group_is_read_up_to_the_last_row_that_is_needed(store, monkeypatch):
    """Rows of several files and row groups, found by their cells, in each kind of column."""
    numbers = [*range(300)]
    rows = cells(numbers)
    write(store, "seed", pa.table({**rows, "v": numbers}), row_group_rows=40)
    payload = {
        "number": numbers,
        "text": pa.array([f"t{n % 9}" for n in numbers]).dictionary_encode(),
        "list": [[n] * (n % 3) for n in numbers],
        "gap": [None if n % 4 else n / 2 for n in numbers],
    }
    write(store, "a", pa.table({**rows, **payload}), row_group_rows=40)
    counts = []

    def spy(*arguments):
        counts.append(arguments[8:])
        return read_row_groups(*arguments)

    monkeypatch.setattr("ktk_engine.local.read.stored_rows.read_row_groups", spy)
    cube = Store(store.root).cube("c")
    names = ["v", *payload]
    whole = {row["v"]: row for row in cube.query(names).to_arrow(engine="local").to_pylist()}
    assert len(whole) == 300 and not any(counts)
    for chosen in ([0], [299], [5, 150], [0, 1, 2, 119, 120, 121], [*range(7, 300, 50)]):
        found = cube.query(names, "v in (:chosen)", parameters={"chosen": chosen})
        rows = found.to_arrow(engine="local").to_pylist()
        assert {row["v"]: row for row in rows} == {number: whole[number] for number in chosen}
    assert any(counts)  # most of these are far from the end of their row groups
    (path,) = store.root.glob("c++a/**/P=0/*.parquet")
    content = bytearray(path.read_bytes())
    group = pq.ParquetFile(path).metadata.row_group(2)  # its first row is that of v = 240
    (chunk,) = (c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == "gap")
    content[chunk.data_page_offset + chunk.total_compressed_size - 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(FormatError, match="damaged"):  # what is read is verified
        cube.query(["gap"], "v = 240").to_arrow(engine="local")


def digest(*tables, names=("x",)):
    found = CellsDigest(names)
    for table in tables:
        found.add(table)
    return found.digest()


VALUES = [
    pa.array([1, 2, 3]),
    pa.array([1, 2, 3], pa.uint64()),
    pa.array([1.5, 2.5, float("nan")]),
    pa.array(["", "a", "bb"]),
    pa.array([b"", b"a", b"bb"]),
    pa.array([False, True, True]),
    pa.array([date(2020, 1, n) for n in (1, 2, 3)]),
    pa.array([Decimal("1.50"), Decimal("2.50"), Decimal("3.50")]),
    pa.array([1, 2, 3], pa.timestamp("us")),
    pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
    pa.array([1, 2, 3], pa.time64("us")),
]


@pytest.mark.parametrize("values", VALUES, ids=lambda values: str(values.type))
def test_how_rows_are_cut_does_not_matter(values):
    table = pa.table({"x": values})
    whole = digest(table)
    assert whole == digest(table.slice(0, 1), table.slice(1)) == digest(table.slice(0, 0), table)
    assert whole != digest(table.slice(0, 2)) and whole != digest(table.slice(1))
    assert whole != digest(table.take([1, 0, 2]))
    assert whole != digest(table.rename_columns(["y"]), names=("y",))


def test_values_of_different_classes_differ():
    found = [digest(pa.table({"x": values})) for values in VALUES]
    assert None not in found and len(set(found)) == len(found)


def test_physical_types_of_a_class_do_not_matter():
    wide = digest(pa.table({"x": pa.array([1, 2])}))
    assert wide == digest(pa.table({"x": pa.array([1, 2], pa.int8())}))


def test_texts_keep_their_borders():
    assert digest(pa.table({"x": ["a", "bc"]})) != digest(pa.table({"x": ["ab", "c"]}))


@pytest.mark.parametrize(
    "values", [[1, None], [[1], [2]], pa.array([1, 2_001], pa.timestamp("ns"))], ids=str
)
def test_what_cannot_be_digested_has_none(values):
    assert digest(pa.table({"x": values})) is None
    assert digest() is None and digest(pa.table({"x": [1]}), names=()) is None
