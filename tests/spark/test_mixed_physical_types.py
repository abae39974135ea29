"""Files of mixed physical types in one class, from another writer, read right through Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from ktk_engine.errors import KtkError, TypeClassError
from ktk_engine.spark.session.spark_job import spark_job
from tests.spark.times import HAS_TIMES
from tests.support.committed import check
from tests.support.dataset_builder import write_plain
from tests.support.documents import load_document

MOMENT = dt.datetime(2020, 2, 29, 12, 30, 0, 123456)

# Container type and value, then what single files hold, and what Spark has to show.
MIXED = {
    "unsigned": (
        pa.uint64(),
        200,
        [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.null(), pa.int8()],
        Decimal(200),
    ),
    "signed": (pa.int64(), 7, [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.null()], 7),
    "float": (pa.float64(), 0.5, [pa.float16(), pa.float32(), pa.float64(), pa.null()], 0.5),
    "timestamp": (
        pa.timestamp("us"),
        MOMENT,
        [pa.timestamp("us"), pa.timestamp("ns"), pa.null()],
        MOMENT,
    ),
    "zone": (
        pa.timestamp("us", "Europe/Berlin"),
        MOMENT.replace(tzinfo=dt.UTC),
        [pa.timestamp("us", "Europe/Berlin"), pa.timestamp("ns", "Europe/Berlin")],
        MOMENT,
    ),
    "time": (pa.time64("us"), dt.time(8, 30), [pa.time64("us"), pa.time32("s"), pa.null()], None),
    "decimal": (
        pa.decimal128(38, 2),
        Decimal("1.50"),
        [pa.decimal128(5, 2), pa.decimal128(38, 2), pa.null()],
        Decimal("1.50"),
    ),
    "date": (pa.date32(), MOMENT.date(), [pa.date32(), pa.date64(), pa.null()], MOMENT.date()),
    "string": (
        pa.string(),
        "a",
        [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.null()],
        "a",
    ),
    "list": (
        pa.list_(pa.uint64()),
        [200],
        [pa.list_(pa.uint8()), pa.list_(pa.uint64()), pa.large_list(pa.uint16())],
        [Decimal(200)],
    ),
}


@pytest.mark.parametrize("kind", [kind for kind in MIXED if HAS_TIMES or kind != "time"])
def test_each_file_keeps_its_type_and_all_read_alike(sql, store, kind):
    container, value, types, shown = MIXED[kind]
    count = len(types)
    table = pa.table(
        {"P": range(count), "L": range(count), "v": pa.array([value] * count, container)}
    )
    write_plain(store, "plain", table, ("P",))
    empty = set()
    for number, t in enumerate(types):
        (path,) = (store.root / "plain" / "table" / f"P={number}").glob("*.parquet")
        data = pq.ParquetFile(path).read()
        # Not of the class: only a file without any value may be so.
        without = pa.types.is_null(t) or (kind == "unsigned" and pa.types.is_signed_integer(t))
        column = pa.nulls(1, t) if without else data["v"].cast(t)
        empty |= {number} if without else set()
        pq.write_table(data.set_column(data.column_names.index("v"), "v", column), path)
    assert check(store, "plain").problems == ()
    rows = sql.sql("select P, v from an.plain order by P").collect()
    wanted = value if shown is None else shown
    assert [row.v for row in rows] == [None if n in empty else wanted for n in range(count)]
    assert sql.sql("select count(v) from an.plain").first()[0] == count - len(empty)
    # Spark's own `count` goes by the settings of the thread's active session.
    assert len(sql.sql("select v from an.plain where P = 1").collect()) == 1


@pytest.mark.skipif(HAS_TIMES, reason="this Spark has a type for times of day")
def test_times_are_refused_where_spark_has_no_type_for_them(sql, store):
    column = pa.array([dt.time(8, 30)], pa.time64("us"))
    write_plain(store, "plain", pa.table({"P": [1], "v": column, "w": [2]}), ("P",))
    with pytest.raises(TypeClassError, match=r"Column `v`: Spark \d.\d has no type for times"):
        sql.sql("select * from an.plain")


@pytest.mark.parametrize(
    ("stored", "right"),
    [
        (pa.array([1.0, None, -2.0]), [1, None, -2]),
        (pa.array([1.5, None, -2.0]), None),
        (pa.array([float("nan"), 1.0, 2.0]), None),
        (pa.array([2**64 - 1, 1, 2], pa.uint64()), None),
        (pa.array([1, 2, 3], pa.uint64()), [1, 2, 3]),
        (pa.array([True, None, False]), [1, None, 0]),
    ],
    ids=["whole", "broken", "NaN", "too large", "unsigned", "bool"],
)
def test_files_of_another_class_than_the_schema(sql, store, stored, right):
    """Kartothek made floats of integers with nulls: every way gives them exactly, or refuses."""
    write_plain(store, "t", pa.table({"id": [1, 2, 3], "v": [1, 2, 3]}))
    (key,) = load_document(store, "t").partitions.values()
    pq.write_table(pa.table({"id": [1, 2, 3], "v": stored}), store.root / key)
    ways = {
        "here": lambda: (
            Store(store.url).table("t").query().to_arrow(engine="local")["v"].to_pylist()
        ),
        "Spark": lambda: [row.v for row in sql.sql("select * from an.t").collect()],
    }
    for ask in ways.values():
        if right is None:
            with pytest.raises(KtkError, match=r"[Cc]olumn `v`.*table/.*\.parquet"), spark_job():
                ask()
        else:
            assert ask() == right
