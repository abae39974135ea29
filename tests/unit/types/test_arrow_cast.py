"""Casts that every version of Arrow has to do."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine.types.arrow_cast import cast_values


def test_fields_of_structs_go_by_their_names():
    given = pa.array([{"b": 2, "a": [{"y": "t", "x": 1}]}, None])
    wanted = pa.struct(
        {"a": pa.list_(pa.struct({"x": pa.int8(), "y": pa.string()})), "b": pa.uint8()}
    )
    found = cast_values(given, wanted)
    assert found.type == wanted
    assert found.to_pylist() == [{"a": [{"x": 1, "y": "t"}], "b": 2}, None]


def test_what_a_null_struct_hides_is_not_looked_at():
    """Arrow itself makes such arrays: each place of a null struct is the dictionary's first."""
    fields = {"a": pa.timestamp("us"), "b": pa.dictionary(pa.int8(), pa.bool_())}
    for depth in range(3):
        wrapped, plain = pa.struct(fields), pa.struct({**fields, "b": pa.bool_()})
        value = None
        for _ in range(depth):
            wrapped, plain, value = pa.list_(wrapped), pa.list_(plain), [value]
        given = pa.array([value, value], wrapped)
        with pytest.raises(pa.ArrowIndexError):
            given.cast(plain)
        found = cast_values(given, plain)
        assert found.type == plain and found.to_pylist() == [value, value]


@pytest.mark.parametrize("value", [-1, 300])
def test_a_value_that_does_not_fit(value):
    given = pa.array([{"b": value, "a": 1}])
    with pytest.raises(pa.ArrowInvalid):
        cast_values(given, pa.struct({"a": pa.int8(), "b": pa.uint8()}))
