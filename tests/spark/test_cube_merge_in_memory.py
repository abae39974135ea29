"""Small merges into datasets of cubes without Spark: as with it, files and messages included."""

from __future__ import annotations

import datetime
import math
from dataclasses import replace

import pyarrow as pa
import pytest

from ktk_engine.spark.arrow_types import spark_schema
from ktk_engine.spark.frames import frame_of_table
from tests.spark.committed import outcome
from tests.support.changes import WriteRequest, build
from tests.support.random_cubes import CLASSES, INDEXED
from tests.support.spark import MergeBy, Predicates, merge, watch_executors

pytestmark = pytest.mark.usefixtures("few_rows")

PLACES = ["a/b", "50%", "x=y", "ü", ""]
FLOATS = [math.nan, -0.0, None, 1.5]
DAY = datetime.date(1582, 10, 4)
TIME = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)
UNSIGNED = {"u": pa.uint64(), "w": pa.uint8()}
CUBE = WriteRequest("t", "seed", "c", ("L", "d"), ("P", "B"), indexes=("w",), declared=UNSIGNED)
CUBE = replace(CUBE, on_schema_change="append_new_columns")
CELLS = ("P", "B", "L", "d")
OTHER_CELLS = (pa.string(), pa.bool_(), pa.int64(), pa.date32())  # which all tests have
IDS = MergeBy(("id",))
NAMES = (*CELLS, "id", "v", "f", "nothing", "t", "u", "w")


def table(numbers, version, **columns):
    """Rows of each class; a number tells their cells apart, and so does the id."""
    numbers = list(numbers)
    rows = {
        "P": pa.array([PLACES[n % 5] for n in numbers]),
        "B": pa.array([n % 2 == 0 for n in numbers]),
        "L": pa.array(numbers, pa.int32()),
        "d": pa.array([DAY + datetime.timedelta(n) for n in numbers]),
        "id": pa.array([None if n % 7 == 3 else f"ü{n}" for n in numbers]),
        "v": pa.array([version * 100 + n for n in numbers], pa.int16()),
        "f": pa.array([FLOATS[(n + version) % 4] for n in numbers], pa.float64()),
        "nothing": pa.nulls(len(numbers)),
        "t": pa.array([TIME + datetime.timedelta(n) for n in numbers], pa.timestamp("ns")),
        "u": pa.array([2**64 - 1 - n for n in numbers], pa.uint64()),
        "w": pa.array([255 - n for n in numbers], pa.uint8()),
    }
    return pa.table(rows | columns)


def of_spark(spark, rows: pa.Table):
    """Spark knows neither unsigned integers nor nanoseconds."""
    types = {
        pa.timestamp("ns"): pa.timestamp("us"),
        **dict.fromkeys(UNSIGNED.values(), pa.decimal128(20, 0)),
    }
    known = pa.schema([field.with_type(types.get(field.type, field.type)) for field in rows.schema])
    return frame_of_table(spark, rows.cast(known), spark_schema(rows.schema))


@pytest.fixture
def both(spark, sql, store, monkeypatch):
    """What a merge does in this process and in Spark, and whether the first did without Spark."""

    def run(parts, new, by, target=CUBE):
        found, here = [], []
        for by_arrow in (True, False):
            build(store, parts[0], target, full_refresh=True)
            for part in parts[1:]:
                build(store, part, target, mode="append")

            def write():
                return merge(sql.scanner(store), of_spark(spark, new), target, by)

            rows = f"select {', '.join(NAMES)} from an.{target.dataset}"
            with monkeypatch.context() as patch:
                noted = watch_executors(patch, by_arrow)
                done = outcome(monkeypatch, store, target, write)
            here.append(noted == [True])
            found.append((*done, sorted(map(repr, sql.sql(rows).collect()))))
        return (*found, here[0])

    return run


ONCE = [table(range(10), 0)]
OVERLAID = [table(range(10), 0), table(range(4, 12), 1), table([5, 6], 2)]
PARTS = {"once": ONCE, "overlaid": OVERLAID}


@pytest.mark.parametrize(
    ("key", "strategy", "parts"),
    [
        (CELLS, "merge", "overlaid"),
        (CELLS, "delete+insert", "once"),
        (("L",), "merge", "overlaid"),
        (("id",), "merge", "overlaid"),
        (("id",), "delete+insert", "overlaid"),
        (("id", "L"), "delete+insert", "once"),
        (("u",), "merge", "overlaid"),
        (("t", "w"), "delete+insert", "overlaid"),
    ],
    ids=str,
)
def test_it_does_what_spark_does(both, parts, key, strategy):
    numbers = [5, 6, 8, 11, 13, 14] if "id" in key else [5, 6, 8, 10, 11, 13, 14]
    found, wanted, here = both(PARTS[parts], table(numbers, 3), MergeBy(key, strategy))
    assert found == wanted
    assert here


@pytest.mark.parametrize(
    ("key", "updated"),
    [(CELLS, ("v", "f")), (("id",), ("v", "f")), (("id",), ("t", "nothing", "L"))],
    ids=str,
)
def test_it_updates_as_spark_does(both, key, updated):
    by = MergeBy(key, update_columns=updated)
    found, wanted, here = both(OVERLAID, table([5, 6, 8, 14], 3), by)
    assert found == wanted
    assert here


@pytest.mark.parametrize("key", [CELLS, ("id",)], ids=str)
def test_rows_that_no_file_can_hold_are_only_added(both, key):
    found, wanted, here = both(OVERLAID, table([108, 109], 3), MergeBy(key))
    assert found == wanted
    assert here
    assert (found[0][0].inserted, found[0][1]) == (2, 0)


def test_columns_that_are_new_or_lacking(both):
    new = table([5, 8, 14], 3, extra=pa.array(["x", None, "ü"])).drop_columns(["v", "nothing"])
    for by in (IDS, MergeBy(CELLS, "delete+insert")):
        found, wanted, here = both(OVERLAID, new, by)
        assert found == wanted
        assert here


@pytest.mark.parametrize(
    ("ids", "strategy", "parts"),
    [(["other", "ü14"], "merge", "overlaid"), ([None, "ü14"], "delete+insert", "once")],
    ids=["another id", "no id"],
)
def test_a_cell_of_a_row_that_stays_is_refused(both, parts, strategy, ids):
    new = table([5, 14], 3, id=pa.array(ids))
    found, wanted, here = both(PARTS[parts], new, MergeBy(("id",), strategy))
    assert found == wanted
    assert "New rows have cells (P, B, L, d) of old rows that stay, since their" in found[0]
    assert not here


def test_an_id_that_an_overlay_has_hidden_is_free(both):
    hidden = [table([1, 2, 6], 0), table([1], 1, id=pa.array(["now"]))]
    found, wanted, here = both(hidden, table([11], 3, id=pa.array(["ü1"])), IDS)
    assert found == wanted
    assert here
    assert (found[0][0].inserted, found[0][0].updated) == (1, 0)
    found, wanted, here = both(hidden, table([1], 3, id=pa.array(["ü1"])), IDS)
    assert found == wanted
    assert "id='now'" in found[0]
    assert not here


@pytest.mark.parametrize("cells", [[13, 13], [13, 5]], ids=str)
def test_new_rows_of_one_cell_are_refused(both, cells):
    """Among each other, or with a row that takes its place by the id."""
    new = table(cells, 3, id=pa.array(["one", "ü5"]))
    found, wanted, here = both(OVERLAID, new, MergeBy(("id",), update_columns=CELLS))
    assert found == wanted
    assert here
    assert ("repeats a cell" in str(found[0])) == (cells == [13, 13])


@pytest.mark.parametrize(("key", "predicate"), [(CELLS, "B"), (("id",), "v < 107")], ids=str)
def test_predicates_say_which_rows_are_merged(both, key, predicate):
    by = MergeBy(key, predicates=Predicates([predicate]))
    found, wanted, here = both(OVERLAID, table([6, 8, 14], 3), by)
    assert found == wanted
    assert here == isinstance(found[0], tuple)  # what is refused, Spark shows


@pytest.mark.parametrize(
    "target",
    [
        replace(CUBE, bucket_by=("L",), num_buckets=2),
        replace(CUBE, dimension_columns=("f", "L")),
    ],
    ids=["buckets", "floats"],
)
def test_what_arrow_would_do_otherwise_is_sparks(both, target):
    """Several files of a partition, and cells in which NaN is NaN."""
    without = table([0, 1, 4, 5], 0, f=pa.array([math.nan, -0.0, 0.0, 1.5]))
    found, wanted, here = both([without], without.slice(0, 2), IDS, target)
    assert found == wanted
    assert not here


@pytest.mark.parametrize("limit", ["MAXIMUM_BYTES", "MAXIMUM_VALUES"])
def test_what_is_large_is_sparks(both, monkeypatch, limit):
    monkeypatch.setattr(f"ktk_engine.write.small_files.{limit}", 10)  # deep: patched
    found, wanted, here = both(OVERLAID, table([5, 6, 14], 3), IDS)
    assert found == wanted
    assert not here


@pytest.mark.parametrize("t", [t for t in INDEXED if t not in OTHER_CELLS], ids=str)
def test_cells_of_each_class(both, t):
    """Rows take the cells of others by their ids; by another id a cell is taken."""
    values = CLASSES[t]
    one_place = {"P": pa.array(["ü"] * len(values)), "B": pa.array([True] * len(values))}
    old = table(range(len(values)), 0, x=pa.array(values, t), **one_place)
    target = replace(CUBE, dimension_columns=("x",), indexes=())
    target = replace(target, declared={**UNSIGNED, **({"x": t} if t == pa.uint64() else {})})
    moved = old.set_column(old.schema.get_field_index("x"), "x", pa.array(values[::-1], t))
    found, wanted, here = both([old, old.slice(1, 1)], moved, IDS, target)
    assert found == wanted
    assert here
    assert found[0][0].updated == len(values)
    found, wanted, here = both([old, old.slice(1, 1)], moved.slice(0, 1), IDS, target)
    assert found == wanted
    assert "New rows have cells (P, B, x) of old rows that stay" in found[0]
    assert not here


@pytest.mark.parametrize("key", [CELLS, ("id",)], ids=str)
def test_enrichments_are_merged_too(both, store, key):
    build(store, table(range(20), 9).select(CELLS), replace(CUBE, indexes=(), declared={}))
    target = replace(CUBE, dataset="e", role="enrichment", dimension_columns=("L",), indexes=())
    found, wanted, here = both(OVERLAID, table([5, 6, 8, 14], 3), MergeBy(key), target)
    assert found == wanted
    assert here
