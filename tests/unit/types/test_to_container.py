from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from ktk_engine.errors import DataError
from ktk_engine.types.to_container import to_container
from ktk_engine.types.type_class import normalize
from tests.unit.types.arrow_types import DECIMALS, VIEWS_AND_HALVES


def _extremes(t: pa.DataType) -> list[object]:
    if pa.types.is_integer(t):
        bits = t.bit_width - (not pa.types.is_unsigned_integer(t))
        return [0 if pa.types.is_unsigned_integer(t) else -(2**bits), 2**bits - 1]
    if pa.types.is_floating(t):
        return [float("inf"), -1.5, -0.0]
    if pa.types.is_decimal(t):
        return [Decimal(10**t.precision - 1).scaleb(-t.scale)] if t.precision < 28 else []
    if pa.types.is_date(t):
        return [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]
    if pa.types.is_time(t):
        return [datetime.time(23, 59, 59)]
    if pa.types.is_timestamp(t):
        return [datetime.datetime(1969, 12, 31, 23, 59, 59)]
    return ["\U0010ffff\0"] if normalize(t) == pa.string() else [b"\xff\x00abcde"]


@pytest.mark.parametrize(
    "t",
    [
        *(pa.type_for_alias(f"{u}int{w}") for u in ("", "u") for w in (8, 16, 32, 64)),
        *(pa.float32(), pa.float64()),
        *(decimal(5, 2) for decimal in DECIMALS),
        *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(7)),
        *VIEWS_AND_HALVES,
        *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us")),
        *(pa.time64("ns"), pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("ns")),
    ],
    ids=str,
)
def test_a_container_holds_every_value(t: pa.DataType) -> None:
    values = pa.array([*_extremes(t), None], normalize(t)).cast(t)
    container = to_container(values)
    assert container.type.equals(normalize(t))
    assert container.cast(t).equals(values) if t != pa.binary(7) else container.null_count == 1
    # Arrow 18 cannot encode halves.
    if not (pa.types.is_decimal(t) or (t == pa.float16() and pa.__version__ < "19")):
        encoded = pa.chunked_array([values.dictionary_encode()])
        assert to_container(encoded).equals(container)


def test_nanoseconds_are_refused_or_rounded() -> None:
    values = pa.array([-1, 1, 2000], pa.timestamp("ns"))
    with pytest.raises(DataError):
        to_container(values)
    floor = to_container(values, rounding="floor").cast(pa.int64())
    ceil = to_container(values, rounding="ceil").cast(pa.int64())
    assert floor.to_pylist() == [-1, 0, 2] and ceil.to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("view", [pa.list_view, pa.large_list_view])
@pytest.mark.parametrize(
    "values",
    [[[1, None], None, [], [4]], [[1], [2, 3]], [], [None, None], [[7]] * 100],
    ids=["nulls", "plain", "empty", "only nulls", "many"],
)
def test_views_of_lists_become_lists_that_end(view, values):
    nested = [{"a": None if value is None else [value]} for value in values]
    deep = pa.struct([("a", view(view(pa.int32())))])
    for data, t in ((values, view(pa.int32())), (nested, deep)):
        array = pa.array(data, t)
        for part, expected in ((array, data), (array.slice(1), data[1:])):
            found = to_container(part)
            found.validate(full=True)
            assert found.type == normalize(t)
            assert found.to_pylist() == expected
