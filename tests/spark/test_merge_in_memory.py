"""Small merges without Spark: the same rows, types and counts as with it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from ktk_engine.spark.arrow_types import spark_schema
from ktk_engine.spark.frames import frame_of_table
from tests.spark.shown import shown
from tests.support.changes import WriteRequest, build
from tests.support.committed import snapshot_of
from tests.support.random_cubes import CLASSES
from tests.support.spark import MergeBy, merge, watch_executors

pytestmark = pytest.mark.usefixtures("few_rows")

COLUMNS = {f"c{number}": t for number, t in enumerate(CLASSES)}
UNSIGNED = [name for name, t in COLUMNS.items() if t.equals(pa.uint64())]
TARGET = WriteRequest("t", partition_by=("P",), declared=dict.fromkeys(UNSIGNED, pa.uint64()))
PLACES = ["a/b", "50%", "x=y", "ü", ""]
SPARKS_OWN = [n for n, t in COLUMNS.items() if t.equals(pa.float64()) or pa.types.is_nested(t)]
DECIMAL = next(name for name, t in COLUMNS.items() if pa.types.is_decimal(t))
KEYS = [name for name, t in COLUMNS.items() if not pa.types.is_map(t)]


def table(start: int, end: int, shift: int) -> pa.Table:
    """Every class, with nulls; a place and a number tell the rows apart."""
    numbers = range(start, end)
    columns = {"P": pa.array([PLACES[n % 5] for n in numbers]), "L": pa.array(numbers)}
    for name, t in COLUMNS.items():
        values = [None, *CLASSES[t]]
        columns[name] = pa.array([values[(n + shift) % len(values)] for n in numbers], t)
    return pa.table(columns)


def as_spark_has_it(spark, rows: pa.Table):
    """Spark knows no unsigned integers; some types are narrower than those of the files."""
    frame = frame_of_table(spark, rows, spark_schema(rows.schema))
    narrow = {
        **dict.fromkeys(UNSIGNED, "decimal(20, 0)"),
        "c0": "bigint",
        DECIMAL: "decimal(20, 2)",
    }
    for name, t in narrow.items():
        frame = frame.withColumn(name, frame[name].cast(t))
    return frame


def both(spark, sql, store, monkeypatch, new, by):
    """What a merge does without Spark and with it, and whether the first did without."""
    results, without = [], []
    for by_arrow in (True, False):
        build(store, table(0, 10, 0), TARGET, full_refresh=True)
        with monkeypatch.context() as patch:
            noted = watch_executors(patch, by_arrow)
            done = merge(sql.scanner(store), as_spark_has_it(spark, new), TARGET, by)
        without += noted
        rows = sql.sql(f"select P, L, {', '.join(COLUMNS)} from an.t").collect()
        after = snapshot_of(store, "t")
        types = sorted(str(schema.remove_metadata()) for schema in after.physical_schemas)
        results.append((shown(rows), str(after.schema), types, done.changes, done.rewritten_files))
    return (*results, without[0])


@pytest.mark.parametrize("key", ["L", *KEYS])
def test_it_does_what_spark_does(spark, sql, store, monkeypatch, key):
    new = table(6, 14, 1)
    found, wanted, without = both(
        spark, sql, store, monkeypatch, new, MergeBy((key,), "delete+insert")
    )
    assert found == wanted
    assert without == (key not in SPARKS_OWN)


@pytest.mark.parametrize("updated", [None, ("c0", "c3", "P", *SPARKS_OWN)], ids=["all", "some"])
@pytest.mark.parametrize("key", [("L",), ("L", "P")], ids=["one", "two"])
def test_it_updates_as_spark_does(spark, sql, store, monkeypatch, key, updated):
    by = MergeBy(key, update_columns=updated)
    found, wanted, without = both(spark, sql, store, monkeypatch, table(6, 14, 3), by)
    assert found == wanted
    assert without


def test_it_adds_rows_that_no_file_can_hold(spark, sql, store, monkeypatch):
    found, wanted, without = both(spark, sql, store, monkeypatch, table(26, 34, 3), MergeBy(("L",)))
    assert found == wanted
    assert found[-1] == 0
    assert without


@pytest.mark.parametrize("limit", ["MAXIMUM_BYTES", "MAXIMUM_VALUES"])
def test_what_is_large_is_sparks(spark, sql, store, monkeypatch, limit):
    monkeypatch.setattr(f"ktk_engine.write.small_files.{limit}", 10)  # deep: patched
    by = MergeBy(("L",), "delete+insert")
    found, wanted, without = both(spark, sql, store, monkeypatch, table(6, 14, 1), by)
    assert found == wanted
    assert not without


def test_a_thread_without_an_active_session_groups_times_of_day(spark, sql, store, monkeypatch):
    """As threads of dbt are; Spark groups by the settings of the active session."""
    new = table(6, 14, 1)

    def run():
        found, wanted, _ = both(
            spark, sql, store, monkeypatch, new, MergeBy(("c2",), "delete+insert")
        )
        return found == wanted

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run).result()
