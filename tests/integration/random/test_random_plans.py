"""Whatever a plan leaves out, no matching row is in it."""

from __future__ import annotations

import io

import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from ktk_engine import Store
from ktk_engine.plan.plan import DatasetPlan
from tests.support.committed import PARTITION_PREFIX
from tests.support.random_cubes import (
    RandomDataset,
    answer,
    columns_of,
    comparable,
    conditions,
    cubes,
    examples,
    joined,
    write,
)
from tests.support.stores import LocalStore

QUESTIONS = 6


def rows_of(store: LocalStore, item: DatasetPlan, dataset: RandomDataset) -> list[list[dict]]:
    """The rows of the files that a plan opens, file by file."""
    found = []
    for file in item.files.to_pylist():
        table = pq.read_table(io.BytesIO(store.get(file["key"])), partitioning=None)
        values = {name: file[PARTITION_PREFIX + name] for name in dataset.partitions}
        found.append([{**row, **values} for row in table.to_pylist()])
    return found


@given(data=st.data(), cube=cubes())
@examples(12)
def test_opened_files_hold_every_row_that_matches(tmp_path_factory, data, cube):
    store = LocalStore(tmp_path_factory.mktemp("random") / "an")
    write(store, cube)
    whole = answer(cube)
    names = {dataset.name: dataset for dataset in cube}
    opened = total = 0
    for _ in range(QUESTIONS):
        condition = data.draw(conditions(cube))
        columns = data.draw(st.lists(st.sampled_from(sorted(columns_of(cube))), min_size=1))
        columns = list(dict.fromkeys(columns))
        plan = Store(store.root).cube("c").query(columns, condition.text).plan
        parts = {item.dataset: rows_of(store, item, names[item.dataset]) for item in plan.datasets}
        found = [row for row in joined(cube, parts) if condition.holds(row) is True]
        expected = [row for row in whole if condition.holds(row) is True]
        assert comparable(found, columns) == comparable(expected, columns), condition.text
        opened += sum(item.files.num_rows for item in plan.datasets)
        total += sum(item.steps[0].files if item.steps else 0 for item in plan.datasets)
    assert opened <= total
