"""Casts that change no value, and the values that do not survive others."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from ktk_engine.types.exact_cast import cast_exactly, misfits
from ktk_engine.types.type_class import plain_type

CASES = [
    ([1, -1, None, 256], pa.int64(), pa.uint8(), [1, 3]),
    ([Decimal(-1), Decimal(2**64), Decimal(2**64 - 1)], pa.decimal128(21, 0), pa.uint64(), [0, 1]),
    ([0.5, 0.1, None, float("nan"), 1e300], pa.float64(), pa.float32(), [1, 4]),
    ([[1, None], [300], None, []], pa.list_(pa.int64()), pa.list_(pa.int8()), [1]),
    ([[0.5], [0.1]], pa.list_(pa.float64()), pa.list_(pa.float32()), [1]),
    ([[1], [1, 2], None], pa.list_(pa.int64()), pa.list_(pa.int8(), 2), [0]),
    (
        [{"a": 1}, {"a": 300}, None],
        pa.struct([("a", pa.int64())]),
        pa.struct([("a", pa.int8())]),
        [1],
    ),
    (
        [[("k", 1)], None, [("k", 300)]],
        pa.map_(pa.string(), pa.int64()),
        pa.map_(pa.string(), pa.int8()),
        [2],
    ),
    ([Decimal("1.5"), Decimal("100.0")], pa.decimal128(9, 1), pa.decimal128(3, 1), [1]),
    ([b"ab", b"c", None], pa.binary(), pa.binary(2), [1]),
]


@pytest.mark.parametrize(("items", "source", "target", "wrong"), CASES, ids=lambda x: str(x)[:30])
def test_misfits_are_found(items, source, target, wrong):
    values = pa.array(items, source)
    cast, mask, _ = cast_exactly(values, target)
    assert cast is None
    assert [i for i, flag in enumerate(mask.to_pylist()) if flag] == wrong
    sliced = values.slice(1)
    assert misfits(sliced, target).to_pylist() == mask.to_pylist()[1:]
    fitting = values.filter(pa.compute.invert(mask))
    cast, mask, error = cast_exactly(fitting, target)
    assert (mask, error) == (None, "")
    assert len(cast) == len(items) - len(wrong)
    assert cast.type == target


def test_dictionaries_and_views_are_stripped_at_any_depth():
    t = pa.dictionary(pa.int8(), pa.string())
    nested = pa.struct([("a", pa.list_(t)), ("b", pa.map_(pa.string(), pa.string_view()))])
    plain = pa.struct([("a", pa.list_(pa.string())), ("b", pa.map_(pa.string(), pa.string()))])
    assert plain_type(nested) == plain
