"""Declared types against a model's: what is adopted, and what is a finding."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine.types.declared import apply_declared, stored_type


def applied(declared, model, **options):
    schema, findings = apply_declared(pa.schema(model), declared, **options)
    return schema, [(item.column, item.rule) for item in findings]


@pytest.mark.parametrize(
    ("declared", "model"),
    [
        (pa.uint8(), pa.decimal128(20, 0)),
        (pa.uint8(), pa.int64()),
        (pa.int8(), pa.int64()),
        (pa.float16(), pa.float64()),
        (pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.list_(pa.uint8()), pa.list_(pa.decimal128(5, 0))),
        (pa.map_(pa.string(), pa.uint8()), pa.map_(pa.string(), pa.int32())),
        (pa.struct([("a", pa.uint8())]), pa.struct([("a", pa.int32())])),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.uint8(), pa.null()),
    ],
    ids=str,
)
def test_the_declared_type_is_stored(declared, model):
    schema, findings = applied({"v": declared}, [("v", model)])
    assert findings == []
    assert schema.field("v").type == declared


@pytest.mark.parametrize(
    ("declared", "model"),
    [
        (pa.uint8(), pa.decimal128(20, 1)),
        (pa.uint8(), pa.bool_()),
        (pa.int8(), pa.decimal128(20, 0)),
        (pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us")),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.list_(pa.uint8()), pa.list_(pa.string())),
    ],
    ids=str,
)
def test_another_class_is_a_finding(declared, model):
    schema, findings = applied({"v": declared}, [("v", model)])
    assert findings == [("v", "declared")]
    assert schema.field("v").type == model


def test_columns_that_are_missing_or_too_many():
    _, findings = applied({"a": pa.int8(), "b": pa.int8()}, [("a", pa.int8()), ("c", pa.int8())])
    assert findings == [("b", "declared")]
    _, findings = applied({"b": pa.int8()}, [("c", pa.int8())], contract=True)
    assert findings == [("c", "contract"), ("b", "declared")]


@pytest.mark.parametrize(
    ("declared", "stored"),
    [
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.time64("ns"), pa.time64("us")),
        (pa.date64(), pa.date32()),
        (pa.dictionary(pa.int8(), pa.int64()), pa.int64()),
        (pa.list_(pa.timestamp("ns", "UTC")), pa.list_(pa.timestamp("us", "UTC"))),
        (pa.string_view(), pa.string()),
        (pa.int8(), pa.int8()),
    ],
    ids=str,
)
def test_what_files_hold(declared, stored):
    assert stored_type(declared) == stored
    assert stored_type(stored) == stored
