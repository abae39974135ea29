"""Random values of random types, and a form in which values of one class compare exactly."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pat
from hypothesis import strategies as st

from ktk_engine.types.arrow_cast import cast_values
from ktk_engine.types.type_class import is_list, normalize, plain_type, storage_problem
from tests.unit.types.strategies import TYPES

# What Arrow itself breaks or lacks: it casts null list views to lists that lack offsets, and no
# lists of a fixed size that hold only nulls. Old versions convert neither views nor half floats,
# and write no nulls in place of lists of a fixed size.
_OLD = int(pa.__version__.split(".")[0]) < 20
_UNSOUND = ("view", "halffloat", "fixed_size_list") if _OLD else ("list_view", "null>[")


def sound(t: pa.DataType) -> bool:
    """Whether Arrow itself works."""
    return not any(word in str(t) for word in _UNSOUND)


STORABLE = TYPES.filter(lambda t: storage_problem(t) is None and sound(t))
_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
_EARLY, _LATE = datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)
# Nanoseconds count from 1970 in 64 bits.
_EARLY_NS, _LATE_NS = datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)
_MICROSECONDS = {"s": 1_000_000, "ms": 1000, "us": 1, "ns": 1}


def values(t: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, nulls among them, that are exact in it and in microseconds."""
    return st.none() | _solid(t)


def _solid(t: pa.DataType) -> st.SearchStrategy[Any]:
    if pat.is_dictionary(t):
        return _solid(t.value_type)
    if pat.is_null(t):
        return st.none()
    if is_list(t):
        size = t.list_size if pat.is_fixed_size_list(t) else None
        return st.lists(values(t.value_type), min_size=size or 0, max_size=size or 3)
    if pat.is_struct(t):
        return st.fixed_dictionaries({f.name: values(f.type) for f in t})
    if pat.is_map(t):
        pairs = st.tuples(_solid(t.key_type), values(t.item_type))
        return st.lists(pairs, max_size=1)  # equal keys are an error of Spark's
    return _flat(t)


def _flat(t: pa.DataType) -> st.SearchStrategy[Any]:
    if pat.is_boolean(t):
        return st.booleans()
    if pat.is_integer(t):
        signed = pat.is_signed_integer(t)
        low = -(2 ** (t.bit_width - 1)) if signed else 0
        return st.integers(low, 2 ** (t.bit_width - signed) - 1)
    if pat.is_floating(t):
        return st.floats(width=t.bit_width)
    if pat.is_decimal(t):
        limit = 10**t.precision - 1
        return st.integers(-limit, limit).map(lambda n: _decimal(n, t.scale))
    if pat.is_date(t):
        return st.dates(_EARLY.date(), _LATE.date())
    if pat.is_time(t):
        return st.times().map(lambda v: _cut(v, t.unit))
    if pat.is_timestamp(t):
        early, late = (_EARLY_NS, _LATE_NS) if t.unit == "ns" else (_EARLY, _LATE)
        zone = datetime.UTC if t.tz else None
        moments = st.datetimes(early, late)
        return moments.map(lambda v: _cut(v, t.unit).replace(tzinfo=zone))
    if pat.is_fixed_size_binary(t):
        return st.binary(min_size=t.byte_width, max_size=t.byte_width)
    text = pat.is_string(t) or pat.is_large_string(t) or pat.is_string_view(t)
    return _TEXT if text else st.binary(max_size=5)


def _decimal(number: int, scale: int) -> Decimal:
    """Arithmetic of decimals would round to the context's 28 digits."""
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def _cut(value: Any, unit: str) -> Any:
    step = _MICROSECONDS[unit]
    return value.replace(microsecond=value.microsecond // step * step)


def array(t: pa.DataType, items: list[Any]) -> pa.Array:
    """Make an array of any type."""
    if pat.is_dictionary(t):
        # Arrow has no dictionaries of views.
        plain = plain_type(t.value_type)
        return pa.array(items, plain).dictionary_encode().cast(pa.dictionary(t.index_type, plain))
    try:
        return pa.array(items, t)
    except pa.ArrowNotImplementedError:  # nested dictionaries of views
        return pa.array(items, plain_type(t))


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A few columns `c0`, `c1` ... of random types with random values, and `id`."""
    types = draw(st.lists(STORABLE, min_size=1, max_size=4))
    rows = draw(st.integers(0, 4))
    columns = {"id": pa.array(range(rows), pa.int64())}
    for number, t in enumerate(types):
        items = draw(st.lists(values(t), min_size=rows, max_size=rows))
        columns[f"c{number}"] = array(t, items)
    return pa.table(columns)


def comparable(column: pa.ChunkedArray, t: pa.DataType) -> list[str]:
    """The values of a column in the container of a type's class, so that equal ones are equal."""
    container = normalize(t)
    plain = column.combine_chunks()
    if pat.is_dictionary(plain.type):
        plain = plain.dictionary_decode()
    plain = cast_values(plain.cast(plain_type(plain.type)), container)
    return [_text(value) for value in plain.to_pylist()]


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return str({name: _text(value[name]) for name in sorted(value)})
    if isinstance(value, list | tuple):
        return str([_text(item) for item in value])
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return repr(value.astimezone(datetime.UTC))
    return repr(value)
