from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.conditions.may_match import may_match
from ktk_engine.conditions.parse import parse_condition
from ktk_engine.types.to_container import to_container  # deep: bounds in containers
from tests.support.queries import normalize
from tests.unit.types.strategies import CONDITIONS, ROW_SCHEMA, TABLES


def _bounds(values: pa.Array) -> tuple[Any, Any]:
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
    values = values.drop_null()
    if len(values) == 0:
        return None, None
    order = values.take(pc.sort_indices(values))
    return order[0].as_py(), order[-1].as_py()


def _statistics(files: list[pa.Table], known: set[str]) -> tuple[Any, Any, Any, Any]:
    mins, maxs, nulls = {}, {}, {}
    for field in ROW_SCHEMA:
        if field.name not in known:
            continue
        arrays = [to_container(table.column(field.name)) for table in files]
        bounds = [_bounds(array) for array in arrays]
        container = normalize(field.type)
        mins[field.name] = pa.array([low for low, _ in bounds], container)
        maxs[field.name] = pa.array([high for _, high in bounds], container)
        nulls[field.name] = pa.array([array.null_count for array in arrays], pa.int64())
    rows = pa.array([table.num_rows for table in files], pa.int64())
    return pa.table(mins), pa.table(maxs), pa.table(nulls), rows


@settings(max_examples=60, deadline=None)
@given(
    CONDITIONS,
    st.lists(TABLES, min_size=1, max_size=4),
    st.sets(st.sampled_from(ROW_SCHEMA.names), min_size=6),
)
def test_a_file_with_a_match_is_never_pruned(
    condition: Condition, files: list[pa.Table], known: set[str]
) -> None:
    result = may_match(condition, *_statistics(files, known))
    assert result.null_count == 0 and len(result) == len(files)
    for table, may in zip(files, result.to_pylist(), strict=True):
        assert may or True not in evaluate(condition, table).to_pylist()


MINS = {"i": [1, 5, None, None], "s": ["a", "abc", None, None], "f": [1.0, 5.0, math.nan, None]}
MAXS = {"i": [3, 9, None, None], "s": ["b", "abd", None, None], "f": [3.0, 5.0, math.nan, None]}
NULLS = {"i": [0, 1, None, 4], "s": [0, 0, None, 4], "f": [0, 0, None, 4]}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("i = 3", "1.1."), ("i = 4", "..1."), ("i < 5", "1.1."), ("i >= 9", ".11."),
        ("i != 4", "111."), ("i in (4, 10, 0)", "..1."), ("i in (7, 2)", "111."),
        ("i not in (2)", "111."), ("i is null", ".111"), ("i is not null", "111."),
        ("not i < 9", ".11."), ("i <=> 2", "1.1."), ("not i <=> 2", "1111"),
        ("s like 'abc%'", "111."), ("s like 'c%'", "..1."), ("s not like 'ab%'", "1.1."),
        ("s not like 'abc%'", "111."), ("s like 'abe_%'", "1.1."), ("f > 4", "111."),
        ("f < 2", "1.1."), ("f != 5", "111."), ("f = 4", "..1."), ("f not in (5)", "111."),
        ("i = 4 or s = 'abc'", "111."), ("i = 2 and s = 'zz'", "..1."), ("i = 1.5", "..1."),
        ("false", "...."), ("true", "1111"), ("i is null and i = 3", "..1."),
    ],
)  # fmt: skip
def test_what_is_pruned(sql: str, expected: str) -> None:
    schema = pa.schema([("i", pa.int8()), ("s", pa.string()), ("f", pa.float64())])
    result = may_match(
        parse_condition(sql, schema),
        pa.table(MINS),
        pa.table(MAXS),
        pa.table(NULLS),
        pa.array([4, 4, 4, 4]),
    )
    assert "".join("1" if may else "." for may in result.to_pylist()) == expected


@pytest.mark.parametrize(
    "sql", ["i = 3", "i = 40", "i < 2", "i in (4, 10)", "not i < 9", "s = 'b'"]
)
def test_bounds_the_wrong_way_round_prune_nothing(sql: str) -> None:
    schema = pa.schema([("i", pa.int8()), ("s", pa.string())])
    mins, maxs = {"i": [9], "s": ["z"]}, {"i": [3], "s": ["a"]}
    nulls = pa.table({"i": [0], "s": [0]})
    condition = parse_condition(sql, schema)
    assert may_match(
        condition, pa.table(mins), pa.table(maxs), nulls, pa.array([4])
    ).to_pylist() == [True]
