"""What Spark changes and reads for Python programs, is what was recorded."""

from __future__ import annotations

from datetime import UTC
from itertools import count

import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from tests.conftest import FEW_ROWS, SPARK_SETTINGS
from tests.golden.canonical import row_lines
from tests.golden.changed import (
    built,
    changes_of,
    merges_of_keys_that_come_twice,
    refused_changes,
)
from tests.golden.changes import STORAGES, questions
from tests.golden.inside import (
    SCHEMA,
    create_view,
    rows_in_sql,
    spark_session,
)
from tests.golden.questions import SEED, check_way, is_plain
from tests.golden.records import records


@pytest.fixture(scope="module")
def spark():
    yield from spark_session(SPARK_SETTINGS, FEW_ROWS)


@pytest.fixture
def frame(spark, tmp_path):
    """Makes frames of Spark."""
    numbers = count()

    def read(rows):
        path = tmp_path / f"frame-{next(numbers)}.parquet"
        pq.write_table(rows, path)
        return spark.read.parquet(str(path))

    return read


@pytest.mark.parametrize("storage", STORAGES)
def test_changes(tmp_path, frame, storage):
    store = Store(tmp_path / "store")
    changed = built(store, storage, 0)
    head = f"{storage}, seed 0"
    with records(f"changes-{storage}", "frames", f"{head}:") as found:
        found.check(f"{head}: rows at first", changed.start())
        for what, change in changes_of(store, changed, frame):
            found.check(f"{head}: {what}", changed.step(change))
        found.check(f"{head}: files and types", changed.layout())
    assert changed.relation.check()["problems"] == ()


def test_merges_of_keys_that_come_twice(tmp_path, frame):
    store = Store(tmp_path / "store")
    changed = built(store, "table", 1)
    with records("changes-twice", "frames") as found:
        found.check("rows at first", changed.start())
        for what, change in merges_of_keys_that_come_twice(store, changed, frame):
            found.check(what, changed.step(change))


def test_refused_changes(tmp_path, frame):
    """Of a table: what is refused in a cube, models of dbt ask for."""
    store = Store(tmp_path / "store")
    changed = built(store, "table", SEED)
    changed.start()
    with records("refused-table", "frames") as found:
        for what, change in refused_changes(store, changed, frame):
            found.check(what, changed.step(change))


@pytest.mark.parametrize("storage", STORAGES)
def test_questions(tmp_path, spark, storage):
    root = tmp_path / SCHEMA
    changed = built(Store(root), storage, SEED)
    relation = changed.relation
    if changed.before.in_cube:
        create_view(root, "t", "t")

    def by_engine(asked):
        rows = relation.query(**asked).to_arrow(spark, engine="spark")
        return row_lines(rows.to_pylist())

    def by_frame(asked):
        query = relation.query(**asked).to_spark(spark)
        instants = [name for name, kind in query.dtypes if kind == "timestamp"]
        rows = [row.asDict(recursive=True) for row in query.collect()]
        for row in rows:  # Spark gives them in the zone of this process
            row |= {n: row[n].astimezone(UTC) for n in instants if row[n] is not None}
        return row_lines(rows)

    def by_sql(asked):
        columns = ", ".join(asked.get("columns", ["*"]))
        where = f" where {asked['where']}" if "where" in asked else ""
        return row_lines(rows_in_sql(spark, root, f"select {columns} from {SCHEMA}.t{where}"))

    all_of_them = questions(changed.before)

    def is_odd(asked):
        return asked in all_of_them and all_of_them.index(asked) % 2 == 1

    check_way(changed, "engine", by_engine, is_odd)
    check_way(
        changed,
        "frame",
        by_frame,
        lambda asked: not is_odd(asked) and asked.get("columns") != [],  # each Spark's own way
    )
    check_way(changed, "SQL", by_sql, is_plain, refused=False)  # Spark says what is wrong
