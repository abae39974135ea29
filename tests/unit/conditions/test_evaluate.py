from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings

from ktk_engine.conditions.condition import Comparison, Condition, IsIn, Like, TrueCondition
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.errors import ConditionError
from tests.unit.types.naive import naive
from tests.unit.types.strategies import CONDITIONS, TABLES


@settings(max_examples=80, deadline=None)
@given(CONDITIONS, TABLES)
def test_as_the_naive_evaluator(condition: Condition, table: pa.Table) -> None:
    rows = table.to_pylist()
    assert evaluate(condition, table).to_pylist() == [naive(condition, row) for row in rows]


def test_nan_is_the_largest_number() -> None:
    table = pa.table({"f": pa.array([math.nan, 1.0, None])})
    zero = pa.scalar(0.0)
    assert evaluate(Comparison("f", ">", zero), table).to_pylist() == [True, True, None]
    assert evaluate(Comparison("f", "<", zero), table).to_pylist() == [False, False, None]
    assert evaluate(Comparison("f", "!=", zero), table).to_pylist() == [True, True, None]


def test_integers_never_pass_through_floats() -> None:
    table = pa.table({"u": pa.array([2**64 - 1, 2**53 + 1], pa.uint64())})
    assert evaluate(Comparison("u", "=", pa.scalar(2**53, pa.uint64())), table).to_pylist() == [
        False,
        False,
    ]
    values = pa.array([2**64 - 2, 2**53 + 1], pa.uint64())
    assert evaluate(IsIn("u", values), table).to_pylist() == [False, True]


def test_nanoseconds_in_the_rows() -> None:
    table = pa.table({"t": pa.array([1000, 1001, None], pa.timestamp("ns"))})
    one = pa.scalar(1, pa.int64()).cast(pa.timestamp("us"))
    expected = {"=": [True, False], "!=": [False, True], "<": [False, False], "<=": [True, False],
                ">": [False, True], ">=": [True, True]}  # fmt: skip
    for op, result in expected.items():
        found = evaluate(Comparison("t", op, one), table)  # type: ignore[arg-type]
        assert found.to_pylist() == [*result, None]
    assert evaluate(IsIn("t", pa.array([one])), table).to_pylist() == [True, False, None]


def test_columns_without_values_and_of_other_classes() -> None:
    table = pa.table({"n": pa.nulls(2), "s": ["a", "b"]})
    one = pa.scalar(1, pa.int64())
    assert evaluate(Comparison("n", "=", one), table).to_pylist() == [None, None]
    assert evaluate(TrueCondition(), table).to_pylist() == [True, True]
    with pytest.raises(ConditionError, match="`s` is of class string"):
        evaluate(Comparison("s", "=", one), table)
    with pytest.raises(ConditionError, match="`x`"):
        evaluate(Comparison("x", "=", one), table)
    chunks = pa.chunked_array([["a\nb"], ["ab"]])
    assert evaluate(Like("s", "a_b"), pa.table({"s": chunks})).to_pylist() == [True, False]
