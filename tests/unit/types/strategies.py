"""Random types, rows and conditions."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any, get_args

import pyarrow as pa
from hypothesis import strategies as st

from ktk_engine.conditions import literal
from ktk_engine.conditions.condition import (
    And,
    Condition,
    FalseCondition,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    StartsWith,
    TrueCondition,
)

ZONES = (None, "UTC", "Europe/Berlin", "+05:30")

FLAT = st.one_of(
    st.sampled_from(
        [
            pa.null(),
            pa.bool_(),
            *(pa.type_for_alias(f"{u}int{w}") for u in ("", "u") for w in (8, 16, 32, 64)),
            *(pa.float16(), pa.float32(), pa.float64()),
            *(pa.string(), pa.large_string(), pa.string_view()),
            *(pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(7)),
            *(pa.date32(), pa.date64()),
            *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
        ]
    ),
    st.builds(
        lambda p, s: pa.decimal128(p, min(p, s)),
        st.integers(1, 38),
        st.sampled_from((0, 2, 5)),
    ),
    st.builds(pa.timestamp, st.sampled_from(("s", "ms", "us", "ns")), st.sampled_from(ZONES)),
)

NAMES = st.sampled_from(("a", "b", "zip", "a b", "x`y", "ü", "c: d>"))


def _nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.dictionaries(NAMES, inner, min_size=1, max_size=3)
    solid = inner.filter(lambda t: not pa.types.is_null(t))
    return st.one_of(
        st.builds(pa.list_, inner),
        st.builds(pa.large_list, inner),
        st.builds(pa.list_view, inner),
        st.builds(lambda t: pa.list_(t, 2), inner),
        st.builds(lambda d: pa.struct(list(d.items())), fields),
        st.builds(pa.map_, solid, inner),
    )


TYPES = st.recursive(FLAT, _nested, max_leaves=4) | FLAT.filter(
    lambda t: not pa.types.is_null(t)
).map(lambda t: pa.dictionary(pa.int8(), t))

DAY = datetime.date(2020, 2, 29)
MOMENT = datetime.datetime(2020, 2, 29, 12, 30, 0, 1000)
ROW_SCHEMA = pa.schema(
    [
        ("i", pa.int8()),
        ("u", pa.uint64()),
        ("f", pa.float32()),
        ("s", pa.large_string()),
        ("c", pa.dictionary(pa.int8(), pa.string())),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("t", pa.timestamp("ms")),
        ("z", pa.timestamp("us", "Europe/Berlin")),
        ("m", pa.decimal128(5, 2)),
        ("x", pa.binary()),
        ("o", pa.time32("s")),
    ]
)
_ZONED = MOMENT.replace(tzinfo=datetime.UTC)
_TEXTS = ["", "a", "ab", "abc", "b'\\x", "ü%_", "a\nb", "\U0010ffff"]
POOLS: dict[str, list[Any]] = {
    "i": [-128, -1, 0, 1, 127],
    "u": [0, 1, 2**53, 2**53 + 1, 2**63, 2**64 - 1],
    "f": [-math.inf, -1.5, -0.0, 0.0, 0.10000000149011612, 2.0, math.inf],
    "s": _TEXTS,
    "c": _TEXTS,
    "b": [True, False],
    "d": [datetime.date(1, 1, 1), DAY, DAY + datetime.timedelta(1), datetime.date(9999, 12, 31)],
    "t": [datetime.datetime(1969, 12, 31, 23, 59, 59), MOMENT, MOMENT + datetime.timedelta(1)],
    "z": [_ZONED, _ZONED + datetime.timedelta(hours=1)],
    "m": [Decimal("-1.50"), Decimal("0.00"), Decimal("1.00"), Decimal("999.99")],
    "x": [b"", b"\x00", b"\xff", b"a", b"a\x00"],
    "o": [datetime.time(0), datetime.time(12, 30), datetime.time(23, 59, 59)],
}


def _rows(field: pa.Field) -> st.SearchStrategy[Any]:
    more = [math.nan] if field.name == "f" else []
    return st.one_of(st.none(), st.sampled_from([*POOLS[field.name], *more]))


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([] for _ in ROW_SCHEMA)
    arrays = [
        pa.array(list(values), field.type.value_type).dictionary_encode().cast(field.type)
        if pa.types.is_dictionary(field.type)
        else pa.array(list(values), field.type)
        for values, field in zip(columns, ROW_SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=ROW_SCHEMA)


TABLES = st.lists(st.tuples(*map(_rows, ROW_SCHEMA)), max_size=8).map(_table)


@st.composite
def _leaf(draw: st.DrawFn) -> Condition:
    column = draw(st.sampled_from(ROW_SCHEMA.names))
    t = ROW_SCHEMA.field(column).type
    value = st.sampled_from(POOLS[column])
    kind = draw(st.sampled_from(("compare", "safe", "in", "null", "constant", "text")))
    if kind == "compare":
        return literal.comparison(column, t, draw(st.sampled_from(get_args(Operator))), draw(value))
    if kind == "safe":
        return literal.null_safe_equal(column, t, draw(value))
    if kind == "in":
        return literal.is_in(column, t, draw(st.lists(value, max_size=4)))
    if kind == "null":
        return IsNull(column)
    if kind == "constant":
        return draw(st.sampled_from((TrueCondition(), FalseCondition())))
    column = draw(st.sampled_from(("s", "c")))
    patterns = st.sampled_from(("%", "a%", "_", "%b", "a_%", "\\%%", "%\\_", "", "ü\\%\\_", "a%b"))
    prefixes = st.sampled_from((*_TEXTS, "zz"))
    return draw(
        st.one_of(
            st.builds(Like, st.just(column), patterns),
            st.builds(StartsWith, st.just(column), prefixes),
        )
    )


CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    _leaf(),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)

_INTEGERS = (8, 16, 32, 64)


def _flat_mates(t: pa.DataType) -> list[pa.DataType]:
    """Give other members of a flat type's class."""
    if pa.types.is_signed_integer(t):
        return [pa.type_for_alias(f"int{width}") for width in _INTEGERS]
    if pa.types.is_unsigned_integer(t):
        return [pa.type_for_alias(f"uint{width}") for width in _INTEGERS]
    if pa.types.is_floating(t):
        return [pa.float16(), pa.float32(), pa.float64()]
    if pa.types.is_decimal(t):
        return [pa.decimal128(38, t.scale), pa.decimal256(40, t.scale), t]
    if pa.types.is_timestamp(t):
        return [pa.timestamp(unit, t.tz) for unit in ("s", "ms", "us", "ns")]
    return [t, pa.dictionary(pa.int8(), t)] if not pa.types.is_null(t) else [t]


def _mate(draw: st.DrawFn, t: pa.DataType) -> pa.DataType:
    """Draw a type that is compatible with a type; now and then a null in the place of a part."""
    if pa.types.is_dictionary(t):
        return _mate(draw, t.value_type)
    if draw(st.integers(0, 9)) == 0:
        return pa.null()
    if pa.types.is_struct(t):
        order = draw(st.permutations(list(t)))
        return pa.struct([(f.name, _mate(draw, f.type)) for f in order])
    if pa.types.is_map(t):
        return pa.map_(t.key_type, _mate(draw, t.item_type))
    if pa.types.is_nested(t):
        make = draw(st.sampled_from((pa.list_, pa.large_list, pa.list_view)))
        return make(_mate(draw, t.value_type))
    return draw(st.sampled_from(_flat_mates(t)))


@st.composite
def families(draw: st.DrawFn, size: int) -> tuple[pa.DataType, ...]:
    """Draw types that are mostly compatible: members of one class, and sometimes a stranger."""
    t = draw(TYPES)
    return tuple(
        draw(TYPES) if draw(st.integers(0, 9)) == 0 else _mate(draw, t) for _ in range(size)
    )
