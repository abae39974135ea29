"""Ranges of cells: each row belongs to one, whatever is null or NaN."""

from __future__ import annotations

import itertools
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktk_engine import Store
from ktk_engine.conditions.evaluate import evaluate  # deep: the naive answer
from ktk_engine.local.answer import LocalEngine
from ktk_engine.local.cell_range import CellRange
from ktk_engine.local.tasks import tasks
from tests.support.documents import CubeSpecification
from tests.support.foreign_cubes import write_files
from tests.support.queries import FooterCache
from tests.support.random_cubes import examples

A = [-1.5, 0.0, 2.0, math.nan, None]
B = ["", "b", "c", None]
ROWS = list(itertools.product(A, B, [False, True, None]))
TABLE = pa.table(
    {
        "A": pa.array([row[0] for row in ROWS], pa.float64()),
        "B": pa.array([row[1] for row in ROWS], pa.string()),
        "C": pa.array([row[2] for row in ROWS], pa.bool_()),
    }
)
CELLS = [
    cell[:length] for length in (1, 2, 3) for cell in itertools.product(A[:3], B[:3], [False, True])
]


def in_order(values):
    """A cell as something that Python compares: NaN after numbers, null last."""
    known = [(1, 0) if isinstance(v, float) and math.isnan(v) else (0, v) for v in values]
    return [(2, 0) if v is None else key for v, key in zip(values, known, strict=True)]


def chosen(range_, known):
    table = TABLE.select(known) if known else TABLE
    flags = evaluate(range_.condition(known), table).to_pylist()
    return {number for number, flag in enumerate(flags) if flag is True}


@given(cuts=st.sets(st.sampled_from(CELLS), max_size=4))
@examples(200)
def test_each_row_belongs_to_one_range(cuts):
    ordered = sorted(cuts, key=in_order)
    edges = [(), *(tuple(map(pa.scalar, cell)) for cell in ordered), ()]
    columns = ("A", "B", "C")
    found = [CellRange(columns, low, high) for low, high in itertools.pairwise(edges)]
    whole = [chosen(range_, columns) for range_ in found]
    for number, row in enumerate(ROWS):
        expected = sum(in_order(cell) <= in_order(row) for cell in ordered)
        assert [number in rows for rows in whole] == [n == expected for n in range(len(found))]
    for known in ([], ["A"], ["A", "B"]):
        for range_, rows in zip(found, whole, strict=True):
            assert rows <= chosen(range_, known)
    assert found[0].condition(["B", "C"]) == CellRange().condition(["B"])


@pytest.fixture
def constant(store, monkeypatch):
    """A cube whose first dimension has one value."""
    monkeypatch.setattr("ktk_engine.local.tasks._TASK_ROWS", 4)
    rows = pa.table({"A": ["x"] * 40, "B": range(40), "v": range(40)})
    specification = CubeSpecification("c", ("A", "B"))
    write_files(store, specification, "seed", [rows], row_group_rows=2)
    names = pa.table({"A": ["x"] * 2, "name": ["first", "second"]}).slice(0, 1)
    write_files(store, specification, "names", [names])
    return store


def test_a_constant_dimension_is_cut_by_the_next(constant):
    plan = Store(constant.root).cube("c").query().plan
    found = tasks(constant, FooterCache(), plan)
    assert [task.rows for task in found] == [4] * 10
    table = LocalEngine(constant, FooterCache()).table(plan)
    assert table["v"].to_pylist() == list(range(40))
    assert table["name"].to_pylist() == ["first"] * 40


def test_dropped_dimensions_cut_nothing(constant):
    query = Store(constant.root).cube("c").query(["A"], dimension_columns=["A"])
    (task,) = tasks(constant, FooterCache(), query.plan)
    assert task.range == CellRange(("A",))
    assert query.to_arrow().to_pylist() == [{"A": "x"}]


@pytest.mark.parametrize(("uncut", "count"), [(0, 20), (39, 20), (40, 1)])
def test_only_few_rows_in_all_are_not_cut_for_workers(constant, monkeypatch, uncut, count):
    monkeypatch.setattr("ktk_engine.local.tasks._TASK_ROWS", 1_000)
    monkeypatch.setattr("ktk_engine.local.tasks._SHARED_ROWS", 2)
    plan = Store(constant.root).cube("c").query().plan
    found = tasks(constant, FooterCache(), plan, None, 100, uncut)
    assert [task.rows for task in found] == [40 // count] * count
