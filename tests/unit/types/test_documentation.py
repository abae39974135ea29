"""docs/types.md lists every class with its Spark type, every refusal, every `on_schema_change`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from ktk_engine.gate.write_request import ON_SCHEMA_CHANGE  # deep: what the page lists
from ktk_engine.types.arrow_name import sql_name
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.type_class import class_name, normalize

PAGE = (Path(__file__).parents[3] / "docs" / "types.md").read_text(encoding="utf-8")
ROWS = {
    cells[0]: cells
    for line in PAGE.splitlines()
    if line.startswith("| ") and len(cells := [cell.strip() for cell in line.split("|")[1:-1]]) > 1
}
FLAT = [
    pa.bool_(),
    pa.int64(),
    pa.uint64(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.time64("us"),
    pa.timestamp("us"),
    pa.null(),
]


@pytest.mark.parametrize("t", FLAT, ids=str)
def test_each_class_stands_with_its_spark_type(t):
    assert ROWS[class_name(t)][3] == sql_name(t)


@pytest.mark.parametrize(
    "name", ["decimal(scale s)", "timestamp[zone]", "list of T", "struct<...>"]
)
def test_each_class_with_parts_stands(name):
    assert name in ROWS
    assert "map of K to V" in ROWS


@pytest.mark.parametrize("name", ["signed integer", "unsigned integer", "float"])
def test_members_are_of_the_class(name):
    for member in ROWS[name][1].split(", "):
        assert class_name(pa.type_for_alias(member)) == name
        assert str(normalize(pa.type_for_alias(member))) in (ROWS[name][2], "double")


@pytest.mark.parametrize("left", FLAT, ids=str)
def test_each_reason_stands(left):
    others = [*FLAT, pa.decimal128(5, 2), pa.timestamp("us", "UTC"), pa.decimal128(5, 3)]
    for right in others:
        found = mismatch(left, right)
        if found is None or found.reason.endswith("are different type classes"):
            continue
        reason = found.reason.partition(" type classes: ")[2] or found.reason
        assert reason in PAGE.replace("`", "")


def test_each_policy_stands():
    for policy in ON_SCHEMA_CHANGE:
        assert f"`{policy}`" in PAGE
