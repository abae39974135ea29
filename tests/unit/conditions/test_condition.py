from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings

from ktk_engine.conditions.condition import (
    And,
    Comparison,
    FalseCondition,
    IsIn,
    IsNull,
    Not,
    NullSafeEqual,
    Or,
    TrueCondition,
    conjunction,
    conjuncts,
    null_rejecting,
    push_not_inward,
)
from ktk_engine.conditions.evaluate import evaluate
from tests.unit.types.strategies import CONDITIONS, ROW_SCHEMA, TABLES

ONE = pa.scalar(1, pa.int64())
A = Comparison("a", ">", ONE)
B = Comparison("b", "=", ONE)


def test_structure() -> None:
    assert And((A, Not(Or((B, IsNull("c")))))).columns == {"a", "b", "c"}
    assert TrueCondition().columns == frozenset()
    assert conjuncts(And((A, And((B, TrueCondition()))))) == (A, B)
    assert conjunction([A, And((B,))]) == And((A, B))
    assert conjunction([]) == TrueCondition()
    assert conjunction([A]) == A
    assert hash(IsIn("a", pa.array([1]))) == hash(IsIn("a", pa.array([1])))
    assert push_not_inward(Not(And((A, Not(B))))) == Or((Comparison("a", "<=", ONE), B))


def test_null_rejecting() -> None:
    assert null_rejecting(A, {"a"}) and not null_rejecting(A, {"b"})
    assert null_rejecting(Not(A), {"a"}) and null_rejecting(FalseCondition(), set())
    assert not null_rejecting(IsNull("a"), {"a"}) and null_rejecting(Not(IsNull("a")), {"a"})
    assert not null_rejecting(Or((A, B)), {"a"}) and null_rejecting(Or((A, B)), {"a", "b"})
    assert null_rejecting(And((A, B)), {"a"})
    assert null_rejecting(NullSafeEqual("a", ONE), {"a"})
    assert not null_rejecting(Not(NullSafeEqual("a", ONE)), {"a"})
    assert not null_rejecting(Not(IsIn("a", pa.array([], pa.int64()))), {"a"})


@settings(max_examples=80, deadline=None)
@given(CONDITIONS, TABLES)
def test_pushing_not_inward_keeps_the_meaning(condition: object, table: pa.Table) -> None:
    pushed = push_not_inward(condition)  # type: ignore[arg-type]
    assert evaluate(pushed, table).equals(evaluate(condition, table))  # type: ignore[arg-type]


@settings(max_examples=80, deadline=None)
@given(CONDITIONS)
def test_null_rejecting_is_right_for_rows_of_nulls(condition: object) -> None:
    nulls = ROW_SCHEMA.empty_table().schema
    row = pa.table([pa.nulls(1, field.type) for field in nulls], schema=nulls)
    (result,) = evaluate(condition, row).to_pylist()  # type: ignore[arg-type]
    if null_rejecting(condition, ROW_SCHEMA.names):  # type: ignore[arg-type]
        assert result is not True
