"""Codes of cells and matches of rows, compared with Python's own."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktk_engine.local.cell_codes import cell_codes
from ktk_engine.local.match import first_of_each, last_of_each, match
from tests.support.random_cubes import CLASSES, COMPARABLE, examples

VALUES = {
    **{t: [None, *values] for t, values in CLASSES.items() if t in COMPARABLE},
    pa.int64(): [None, -(2**63), -1, 0, 3, 2**63 - 1],
    pa.uint64(): [None, 0, 7, 2**63, 2**64 - 1],
    pa.float64(): [None, -math.inf, -0.5, -0.0, 0.0, 1e300, math.inf, math.nan],
}


@st.composite
def tables(draw: st.DrawFn, count: int) -> list[pa.Table]:
    types = draw(st.lists(st.sampled_from(COMPARABLE), min_size=1, max_size=4))
    row = st.tuples(*(st.sampled_from(VALUES[t]) for t in types))
    found = []
    for _ in range(count):
        rows = draw(st.lists(row, max_size=12))
        columns = {f"c{i}": pa.array([r[i] for r in rows], t) for i, t in enumerate(types)}
        found.append(pa.table(columns))
    return found


def cells(table: pa.Table) -> list[tuple]:
    def plain(value):
        return "NaN" if isinstance(value, float) and math.isnan(value) else value

    return [tuple(plain(row[c]) for c in table.column_names) for row in table.to_pylist()]


@given(pair=tables(2))
@examples(150)
def test_codes_are_equal_for_equal_cells(pair):
    codes = cell_codes(pair)
    numbers = [int(code) for part in codes.parts for code in part]
    rows = cells(pair[0]) + cells(pair[1])
    for code, row in zip(numbers, rows, strict=True):
        assert 0 <= code < codes.width
        assert [c == code for c in numbers] == [other == row for other in rows]


@given(
    pair=tables(2), how=st.sampled_from(["inner", "left"]), dense=st.sampled_from([0, 8]),
    repeats=st.sampled_from([0, 4]),
)  # fmt: skip
@examples(200)
def test_matches_are_those_of_sql(pair, how, dense, repeats):
    left, right = (cells(table) for table in pair)
    with pytest.MonkeyPatch.context() as patch:  # look codes up in a table, or search for them
        patch.setattr("ktk_engine.local.match._DENSE", dense)
        patch.setattr("ktk_engine.local.match._DENSE_AT_LEAST", dense)
        patch.setattr("ktk_engine.local.cell_codes._REPEATS", repeats)
        found = match(pair[0], pair[1], how)
    at = range(len(left)) if found.left is None else found.left.tolist()
    other = range(len(at)) if found.right is None else found.right.tolist()
    expected = []
    for number, row in enumerate(left):
        hits = [n for n, cell in enumerate(right) if cell == row and None not in row]
        if how == "left" and not hits:
            hits = [-1]
        expected += [(number, hit) for hit in hits]
    assert list(zip(at, other, strict=True)) == expected


@given(one=tables(1))
@examples(80)
def test_first_and_last_of_each(one):
    (table,) = one
    rows = cells(table)
    last = {row: number for number, row in enumerate(rows)}
    first = {row: number for number, row in reversed(list(enumerate(rows)))}
    for found, expected in ((last_of_each(table), last), (first_of_each(table), first)):
        numbers = list(range(len(rows))) if found is None else found.tolist()
        assert numbers == sorted(expected.values())


@pytest.mark.parametrize(
    ("left", "right", "plain"),
    [
        ([1, 2, 3], [1, 2, 3], True),
        ([1, 1, 3], [1, 1, 3], False),  # each row of one meets two of the other
        ([1, None], [1, None], False),  # null equals nothing
        ([2, 1], [2, 1], False),
    ],
)
def test_equal_cells_need_no_positions(left, right, plain):
    found = match(pa.table({"a": left}), pa.table({"a": right}), "inner")
    assert (found.left is None and found.right is None) == plain


def test_codes_ascend_with_the_cells():
    table = pa.table({"s": ["a", "b", "b"], "n": [5, -7, 2**40]})
    (codes,) = cell_codes([table]).parts
    assert bool(np.all(codes[1:] > codes[:-1]))


def test_wide_columns_become_ranks():
    n = 300
    table = pa.table({name: [i * 2**50 - 2**62 for i in range(n)] for name in "abcd"})
    (codes,) = cell_codes([table]).parts
    assert len(set(codes.tolist())) == n
