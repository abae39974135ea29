from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings

from ktk_engine.errors import TypeClassError
from ktk_engine.types.type_class import (
    class_name,
    class_problem,
    normalize,
    role_problem,
    storage_problem,
)
from tests.unit.types.arrow_types import BOOL8, DECIMALS, EXTENSIONS
from tests.unit.types.strategies import TYPES

BERLIN = pa.timestamp("us", "Europe/Berlin")


@pytest.mark.parametrize(
    ("source", "container", "name"),
    [
        (pa.int8(), pa.int64(), "signed integer"),
        (pa.uint32(), pa.uint64(), "unsigned integer"),
        (pa.float16(), pa.float64(), "float"),
        (DECIMALS[0](5, 2), pa.decimal128(38, 2), "decimal(scale 2)"),
        (pa.decimal256(30, 2), pa.decimal128(38, 2), "decimal(scale 2)"),
        (pa.decimal256(50, 2), pa.decimal256(76, 2), "decimal(scale 2)"),
        (pa.string_view(), pa.string(), "string"),
        (pa.binary(16), pa.binary(), "binary"),
        *EXTENSIONS,
        (pa.date64(), pa.date32(), "date"),
        (pa.time32("ms"), pa.time64("us"), "time"),
        (pa.timestamp("ns"), pa.timestamp("us"), "timestamp"),
        (pa.timestamp("s", "Europe/Berlin"), BERLIN, "timestamp[Europe/Berlin]"),
        (pa.dictionary(pa.int8(), pa.int16()), pa.int64(), "signed integer"),
        (pa.run_end_encoded(pa.int32(), pa.float32()), pa.float64(), "float"),
        (pa.large_list(pa.int8()), pa.list_(pa.int64()), "list of signed integer"),
        (pa.list_(pa.int8(), 3), pa.list_(pa.int64()), "list of signed integer"),
        (
            pa.struct([pa.field("zip", pa.int32(), nullable=False), ("city", pa.string())]),
            pa.struct([("city", pa.string()), ("zip", pa.int64())]),
            "struct<city: string, zip: signed integer>",
        ),
        (
            pa.map_(pa.large_string(), pa.float32()),
            pa.map_(pa.string(), pa.float64()),
            "map of string to float",
        ),
        (pa.null(), pa.null(), "null"),
        (pa.bool_(), pa.bool_(), "bool"),
    ],
)
def test_normal_form_and_name(source: pa.DataType, container: pa.DataType, name: str) -> None:
    assert normalize(source).equals(container)
    assert class_name(source) == class_name(container) == name


@pytest.mark.parametrize(
    "t",
    [
        pa.duration("s"),
        pa.month_day_nano_interval(),
        *BOOL8,
        pa.list_(pa.duration("ns")),
        pa.struct([("a", pa.int8()), ("a", pa.int8())]),
        pa.dense_union([pa.field("a", pa.int8())]),
    ],
)
def test_types_without_class_are_refused_with_a_reason(t: pa.DataType) -> None:
    assert class_problem(t) is not None
    assert class_name(t) in ("no class", "list of no class") or class_name(t).startswith("struct")
    with pytest.raises(TypeClassError, match="has no type class"):
        normalize(t)


@settings(max_examples=150, deadline=None)
@given(TYPES)
def test_normalising_again_changes_nothing(t: pa.DataType) -> None:
    container = normalize(t)
    assert normalize(container).equals(container)
    assert class_name(container) == class_name(t)


def test_what_cannot_be_stored() -> None:
    assert storage_problem(pa.list_(pa.int8())) is None
    assert storage_problem(pa.struct([]))
    assert storage_problem(pa.decimal256(50, 2))
    assert storage_problem(pa.decimal128(12, -3))
    assert storage_problem(pa.map_(pa.string(), pa.struct([])))
    assert storage_problem(pa.duration("s"))


def test_roles() -> None:
    for t in (pa.bool_(), pa.float32(), pa.binary(), pa.date64(), BERLIN, pa.uint8()):
        for role in ("dimension", "partition", "index"):
            assert role_problem(t, role) is None
    for t in (pa.list_(pa.int8()), pa.null(), pa.decimal128(5, 2), pa.duration("s")):
        for role in ("dimension", "partition", "index"):
            assert role_problem(t, role)
    assert role_problem(pa.time64("us"), "partition") is None
    assert role_problem(pa.time64("us"), "index")
    assert role_problem(pa.time64("us"), "dimension")
