"""Random cubes and queries, answered in this process, give the same rows as plain joins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktk_engine import Store
from ktk_engine.local.answer import LocalEngine
from tests.support.foreign_cubes import joined_with_nulls, write_foreign
from tests.support.queries import FooterCache, Plan
from tests.support.random_cubes import (
    INDEXED,
    RandomCondition,
    RandomDataset,
    Row,
    answer,
    columns_of,
    comparable,
    conditions,
    cubes,
    examples,
    write,
)
from tests.support.stores import LocalStore

QUESTIONS = 4
EVERYTHING = RandomCondition("", lambda row: True)


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    """Partitions of a dozen rows are cut and put together as larger ones are."""
    monkeypatch.setattr("ktk_engine.local.tasks._TASK_ROWS", 3)
    monkeypatch.setattr("ktk_engine.local.read.decoded_size._LEAST_ROWS", 4)
    monkeypatch.setattr("ktk_engine.local.read.first_rows._MOST_FILES", 2)
    monkeypatch.setattr("ktk_engine.local.read.first_rows._FEW_ROWS", 2)


@contextmanager
def slices(rows: int) -> Iterator[None]:
    """Let tasks be cut into slices of about so many rows; 0: read them in one piece."""
    tiny = {
        "_WHOLE_BYTES": 1,
        "_COLUMN_BYTES": 0,
        "_SLICE_BYTES": 100,
        "_SLICE_ROWS": rows,
        "_BLOCK_ROWS": rows,
    }
    with patch.multiple("ktk_engine.local.stream", **(tiny if rows else {"_WHOLE_BYTES": 1 << 30})):
        yield


@given(data=st.data(), cube=cubes(enrichments=3))
@examples(10)
def test_files_of_ours(tmp_path_factory, data, cube):
    store = LocalStore(tmp_path_factory.mktemp("random") / "an")
    write(store, cube)
    check_questions(store, data, cube, answer(cube))


@given(data=st.data(), cube=cubes(enrichments=3, kinds=[*INDEXED, pa.float64()], missing=True))
@examples(15)
def test_files_of_other_writers(tmp_path_factory, data, cube):
    store = LocalStore(tmp_path_factory.mktemp("random") / "an")
    write_foreign(store, cube, data)
    check_questions(store, data, cube, joined_with_nulls(cube))


def check_questions(
    store: LocalStore, data: st.DataObject, cube: list[RandomDataset], whole: list[Row]
) -> None:
    engine = LocalEngine(store, FooterCache(), threads=2)
    opened = Store(store.root).cube("c")
    for _ in range(QUESTIONS):
        condition = data.draw(st.one_of(conditions(cube), conditions(cube), st.just(EVERYTHING)))
        columns = data.draw(st.permutations(list(columns_of(cube))))
        columns = columns[: data.draw(st.integers(1, len(columns)))]
        expected = [row for row in whole if condition.holds(row) is True]
        plan = opened.query(columns, condition.text or None).plan
        with slices(data.draw(st.integers(0, 3))):
            table = engine.table(plan)
            assert table.schema.equals(pa.schema([opened.schema.field(c) for c in columns]))
            assert comparable(table.to_pylist(), columns) == comparable(expected, columns)
            assert engine.count(plan) == len(expected), condition.text
            batches = [row for batch in engine.batches(plan) for row in batch.to_pylist()]
            assert comparable(batches, columns) == comparable(expected, columns)
            check_first(engine, plan, data.draw(st.integers(0, 8)))
    kept = [data.draw(st.sampled_from(cube[0].dimensions))]
    address = [*kept, *cube[0].partitions]
    plan = opened.query(address, dimension_columns=kept).plan
    with slices(data.draw(st.integers(0, 3))):
        found = comparable(engine.table(plan).to_pylist(), address)
        check_first(engine, plan, data.draw(st.integers(0, 8)))
    assert found == sorted(set(comparable(whole, address)))


def check_first(engine: LocalEngine, plan: Plan, limit: int) -> None:
    """The first rows are those of the whole answer; cells with null may repeat, in any order."""
    first, names = replace(plan, limit=limit), list(dict.fromkeys(plan.columns))
    whole, found = engine.table(plan, plan.order_by), engine.table(first, plan.order_by)
    assert in_order(found) == in_order(whole.slice(0, limit))
    rest = comparable(engine.table(plan).to_pylist(), names)
    for row in comparable(engine.table(first).to_pylist(), names):
        rest.remove(row)
    assert engine.count(first) == found.num_rows


def in_order(rows: pa.Table) -> list[str]:
    """Rows that can be compared: NaN is equal to NaN, -0.0 to 0.0."""
    return [
        repr([value + 0.0 if isinstance(value, float) else value for value in row.values()])
        for row in rows.to_pylist()
    ]
