from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ktk_engine.errors import TypeClassError
from ktk_engine.types.declared import adopt_unsigned
from ktk_engine.types.finding import findings_table, raise_findings
from ktk_engine.types.schema import (
    check_roles,
    check_shared,
    check_storable,
    compare_schemas,
    dataset_schema,
    merge_schemas,
)
from tests.support.voices import DBT, spoken

COMMITTED = pa.schema(
    [("price", pa.float64()), ("day", pa.timestamp("us")), ("city", pa.string()), ("n", pa.null())]
)


def test_normal_form_of_a_schema() -> None:
    schema = pa.schema(
        [
            pa.field("b", pa.int8(), nullable=False),
            ("ü", pa.null()),
            ("B", pa.date64()),
            ("p", pa.uint8()),
        ],
        metadata={"k": "v"},
    )
    result = dataset_schema(schema, ["p"])
    assert result.names == ["p", "B", "b", "ü"]
    assert result.types == [pa.uint64(), pa.date32(), pa.int64(), pa.null()]
    assert all(field.nullable for field in result) and result.metadata is None
    with pytest.raises(TypeClassError, match="did you mean `p`"):
        dataset_schema(schema, ["P"])
    with pytest.raises(TypeClassError, match="duration"):
        dataset_schema(pa.schema([("a", pa.duration("s"))]), [])
    with pytest.raises(TypeClassError, match="2 times"):
        dataset_schema(pa.schema([("a", pa.int8()), ("a", pa.int8())]), [])


def test_findings_of_a_comparison() -> None:
    model = pa.schema(
        [
            ("cty", pa.string()),
            ("day", pa.date32()),
            ("price", pa.decimal128(10, 2)),
            ("x y", pa.int8()),
        ]
    )
    findings = {f.column: f for f in compare_schemas(COMMITTED, model)}
    assert list(findings) == ["price", "day", "city", "cty", "x y"]
    assert spoken(findings["price"].fix, DBT) == "cast(price as double)"
    assert spoken(findings["day"].fix, DBT) == "cast(day as timestamp_ntz)"
    assert findings["city"].rule == "missing"
    assert "did you mean city?" in str(findings["cty"].reason)
    fix = findings["x y"].fix
    assert spoken(fix, DBT) == "remove it, or on_schema_change: append_new_columns"
    assert str(fix) == "remove it, or add it first: .alter(add={'x y': pa.int64()})"
    assert json.loads(json.dumps(findings["price"].as_dict()))["model_class"] == "decimal(scale 2)"
    assert compare_schemas(COMMITTED, COMMITTED) == []
    same = pa.schema([("city", pa.null()), ("price", pa.float32()), ("day", pa.timestamp("ns"))])
    assert compare_schemas(COMMITTED, same) == []


@pytest.mark.parametrize(
    ("committed", "model", "fix", "in_python"),
    [
        (pa.uint64(), pa.int64(), "cast(c as decimal(20,0))", "table['c'].cast(pa.uint64())"),
        (pa.int64(), pa.string(), "cast(c as bigint)", "table['c'].cast(pa.int64())"),
        (pa.binary(), pa.int64(), "give c as binary", "give c as pa.binary()"),
        (pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "UTC"),
         "data_type: timestamp[us, tz=Europe/Berlin]",
         "table['c'].cast(pa.timestamp('us', 'Europe/Berlin'))"),
        (pa.list_(pa.int64()), pa.list_(pa.float64()), "cast(c as array<bigint>)",
         "table['c'].cast(pa.list_(pa.int64()))"),
        (pa.list_(pa.int64()), pa.int64(), "give c as array<bigint>",
         "give c as pa.list_(pa.int64())"),
        (
            pa.struct([("a", pa.int64()), ("b", pa.string())]),
            pa.struct([("b", pa.string()), ("a", pa.float64())]),
            "cast(c as struct<b: string, a: bigint>)",
            "table['c'].cast(pa.struct({'a': pa.int64(), 'b': pa.string()}))",
        ),
        (
            pa.struct([("a", pa.int64())]),
            pa.struct([("b", pa.int64())]),
            "give c as struct<a: bigint>",
            "give c as pa.struct({'a': pa.int64()})",
        ),
    ],
)  # fmt: skip
def test_fixes(committed: pa.DataType, model: pa.DataType, fix: str, in_python: str) -> None:
    (finding,) = compare_schemas(pa.schema([("c", committed)]), pa.schema([("c", model)]))
    assert (spoken(finding.fix, DBT), str(finding.fix)) == (fix, in_python)


_AT = datetime(2026, 1, 1, 12, 30)


@pytest.mark.parametrize(
    ("committed", "given"),
    [
        (pa.int64(), pa.array(["1", None])),
        (pa.float64(), pa.array([1, None])),
        (pa.string(), pa.array([1.5, None])),
        (pa.bool_(), pa.array(["true"])),
        (pa.uint64(), pa.array([1])),
        (pa.binary(), pa.array(["a"])),
        (pa.decimal128(38, 2), pa.array(["1.25"])),
        (pa.decimal128(38, 3), pa.array([Decimal("1.25")])),
        (pa.date32(), pa.array([_AT], pa.timestamp("us"))),
        (pa.timestamp("us"), pa.array([_AT.date()])),
        (pa.timestamp("us"), pa.array([_AT], pa.timestamp("us", "UTC"))),
        (pa.timestamp("us", "UTC"), pa.array([_AT], pa.timestamp("us"))),
        (pa.timestamp("us", "Europe/Berlin"), pa.array([_AT], pa.timestamp("us", "UTC"))),
        (pa.list_(pa.int64()), pa.array([["1"], None])),
        (pa.struct({"a": pa.int64(), "b": pa.string()}), pa.array([{"b": "x", "a": "1"}])),
    ],
)
def test_casts_in_python_work(committed: pa.DataType, given: pa.Array) -> None:
    table = pa.table({"a b": given})
    (finding,) = compare_schemas(pa.schema([("a b", committed)]), table.schema)
    cast = eval(str(finding.fix), {"pa": pa, "pc": pc, "table": table})
    assert compare_schemas(pa.schema([("a b", committed)]), pa.schema([("a b", cast.type)])) == []


def test_a_column_of_nulls_in_python_works() -> None:
    table = pa.table({"day": pa.array([1])})
    (finding,) = compare_schemas(pa.schema([("city", pa.string())]), table.schema.remove(0))
    assert str(finding.fix) == (
        "add it, or table.append_column('city', pa.nulls(len(table), pa.string())), or drop it "
        "first: .alter(drop=['city'])"
    )
    added = eval(str(finding.fix).split(", or ")[1], {"pa": pa, "table": table})
    assert added.schema.names == ["day", "city"]


def test_the_message() -> None:
    model = pa.schema(
        [("price", pa.decimal128(10, 2)), ("day", pa.timestamp("us")), ("city", pa.string())]
    )
    findings = compare_schemas(COMMITTED, model)
    with pytest.raises(TypeClassError) as error:
        raise_findings(findings, "model prices -> dataset geo++prices", 4)
    assert error.value.findings == tuple(findings)
    assert error.value.said(DBT) == (
        "Cube type check failed for model prices -> dataset geo++prices (nothing was written)\n\n"
        "| column | committed class | committed type | model's class    | model's type      | "
        "reason                                       | fix                   |\n"
        "| ------ | --------------- | -------------- | ---------------- | ----------------- | "
        "-------------------------------------------- | --------------------- |\n"
        "| price  | float           | double         | decimal(scale 2) | decimal128(10, 2) | "
        "float64 has no exact form of the decimal 0.1 | cast(price as double) |\n\n"
        "1 of 4 columns differs."
    )


def test_columns_that_the_model_lacks_are_counted_among_all() -> None:
    model = pa.schema([("day", pa.date32()), ("new", pa.string())])
    with pytest.raises(TypeClassError, match=r"\n\n4 of 4 columns differ"):
        raise_findings(compare_schemas(COMMITTED, model), "a model", len(model))


def test_cells_of_the_table_stay_in_their_line() -> None:
    (finding,) = compare_schemas(pa.schema([]), pa.schema([("a|b\nc", pa.int8())]))
    lines = findings_table([finding]).splitlines()
    assert len(lines) == 3 and "a\\|b c" in lines[2]


def test_shared_columns() -> None:
    schema = pa.schema([("p", pa.int8()), ("d", pa.int8()), ("v", pa.int8())])
    other = pa.schema([("p", pa.int64()), ("d", pa.uint8()), ("v", pa.int8())])
    findings = check_shared("b", schema, {"c": other, "a": other, "b": other}, {"p", "d"})
    assert [(f.column, f.rule) for f in findings] == [
        ("d", "shared"),
        ("v", "owner"),
        ("v", "owner"),
    ]
    assert findings[0].reason.startswith("datasets a, c have another class: int64 cannot hold")
    assert findings[1].reason == "payload column v is already owned by dataset a"


def test_roles_and_storage() -> None:
    schema = pa.schema(
        [("l", pa.list_(pa.int8())), ("m", pa.decimal128(5, 2)), ("e", pa.struct([]))]
    )
    found = check_roles(schema, ["l", "other"], ["m"], ["l"])
    assert [(f.column, f.rule) for f in found] == [("m", "role"), ("l", "role")]
    assert [f.column for f in check_storable(schema)] == ["e"]


def test_merging_schemas() -> None:
    model = pa.schema(
        [("n", pa.int8()), ("new", pa.int8()), ("void", pa.null()), ("price", pa.null())]
    )
    merged = merge_schemas(COMMITTED, model)
    assert merged.names == ["price", "day", "city", "n", "new", "void"]
    assert merged.field("n").type == pa.int64() and merged.field("price").type == pa.float64()
    with pytest.raises(TypeClassError):
        merge_schemas(COMMITTED, pa.schema([("price", pa.string())]))


def test_unsigned_integers_come_back_from_spark_as_decimals() -> None:
    committed = pa.schema(
        [("u", pa.uint64()), ("l", pa.list_(pa.uint64())), ("m", pa.decimal128(38, 0))]
    )
    decimal = pa.decimal128(20, 0)
    model = pa.schema([("u", decimal), ("l", pa.list_(decimal)), ("m", decimal), ("x", decimal)])
    adopted = adopt_unsigned(committed, model)
    assert adopted.types == [pa.uint64(), pa.list_(pa.uint64()), decimal, decimal]
    assert adopt_unsigned(committed, pa.schema([("u", pa.int64())])).types == [pa.int64()]
