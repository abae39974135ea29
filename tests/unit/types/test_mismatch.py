from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktk_engine.errors import TypeClassError
from ktk_engine.types.mismatch import merge, mismatch
from ktk_engine.types.type_class import normalize
from tests.unit.types.arrow_types import DECIMALS
from tests.unit.types.strategies import TYPES, families


def _has_null(t: pa.DataType) -> bool:
    return "null" in str(normalize(t))


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        (pa.int8(), pa.uint8(), "9223372036854775807, uint64 cannot hold negative numbers"),
        (pa.int64(), pa.float32(), "float64 cannot hold 9007199254740993"),
        (pa.uint64(), pa.float32(), "float64 cannot hold 9007199254740993"),
        (pa.string(), pa.binary(), r"b'\\xff' is not UTF-8 text"),
        (pa.bool_(), pa.int8(), "false is 0"),
        (pa.date32(), pa.timestamp("us"), "time of day"),
        (pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin"), "time zone"),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), "time zone"),
        (pa.decimal128(5, 2), pa.decimal128(5, 4), "scale 2 cannot hold 0.0001"),
        (pa.decimal128(5, 2), pa.float64(), "0.1"),
        (pa.string(), pa.int8(), "are different type classes"),
        (pa.list_(pa.string()), pa.string(), "are different type classes"),
        (pa.duration("s"), pa.duration("s"), "no type class"),
    ],
)
def test_reasons(left: pa.DataType, right: pa.DataType, reason: str) -> None:
    for a, b in ((left, right), (right, left)):
        found = mismatch(a, b, "c")
        assert found is not None and reason.replace("\\\\", "\\") in found.reason
        assert found.path == "c"
        with pytest.raises(TypeClassError):
            merge(a, b)


def test_paths() -> None:
    left = pa.struct([("zip", pa.int8()), ("m", pa.map_(pa.string(), pa.list_(pa.int8())))])
    right = pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.uint8()))), ("zip", pa.int8())])
    found = mismatch(left, right, "address")
    assert found is not None and found.path == "address.m{value}[]"
    found = mismatch(left, pa.struct([("zip", pa.int8())]), "address")
    assert found is not None and found.reason == "the fields differ: only one side has `m`"


def test_null_is_resolved_at_any_depth() -> None:
    left = pa.struct([("a", pa.list_(pa.null())), ("b", pa.int8())])
    right = pa.struct([("b", pa.null()), ("a", pa.list_(pa.uint8()))])
    expected = pa.struct([("a", pa.list_(pa.uint64())), ("b", pa.int64())])
    assert mismatch(left, right) is None
    assert merge(left, right).equals(expected) and merge(right, left).equals(expected)
    assert merge(pa.null(), pa.int8()).equals(pa.int64())


def test_decimals_are_widened() -> None:
    assert merge(pa.decimal128(5, 2), pa.decimal256(60, 2)).equals(pa.decimal256(76, 2))
    for decimal in DECIMALS[:-1]:
        assert merge(pa.decimal128(5, 2), decimal(7, 2)).equals(pa.decimal128(38, 2))


@settings(max_examples=100, deadline=None)
@given(families(2) | st.tuples(TYPES, TYPES))
def test_compatibility_is_symmetric_and_means_equal_containers(
    types: tuple[pa.DataType, pa.DataType],
) -> None:
    a, b = types
    assert mismatch(a, a) is None
    assert (mismatch(a, b) is None) == (mismatch(b, a) is None)
    # Decimals of more than 38 digits are the one class with two containers.
    if not any(_has_null(t) or "decimal256" in str(t) for t in types):
        assert (mismatch(a, b) is None) == normalize(a).equals(normalize(b))


@settings(max_examples=100, deadline=None)
@given(families(3))
def test_compatibility_is_transitive_apart_from_null(
    types: tuple[pa.DataType, pa.DataType, pa.DataType],
) -> None:
    a, b, c = types
    if mismatch(a, b) is None and mismatch(b, c) is None and not _has_null(b):
        assert mismatch(a, c) is None


@settings(max_examples=100, deadline=None)
@given(families(2))
def test_merging_gives_a_normal_form_that_fits_both(
    types: tuple[pa.DataType, pa.DataType],
) -> None:
    a, b = types
    if mismatch(a, b) is None:
        merged = merge(a, b)
        assert merged.equals(normalize(merged)) and merged.equals(merge(b, a))
        assert mismatch(merged, a) is None and mismatch(merged, b) is None
