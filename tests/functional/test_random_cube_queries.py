"""Random questions through dbt: what `cube_query` compiles to gives the rows of plain joins."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from dbt.tests.util import run_dbt, write_file
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from tests.support.documents import ViewDocument, add_view
from tests.support.random_cubes import (
    answer,
    columns_of,
    comparable,
    conditions,
    cubes,
    examples,
    write,
)
from tests.support.stores import LocalStore

QUESTIONS = 6
MODEL = """
{{% set cube = api.Relation.create(schema='{schema}', identifier='c') %}}
{{{{ cube_query(cube, columns={columns!r}, where={where!r}) }}}}
"""


class TestRandomCubeQueries:
    @given(data=st.data(), cube=cubes(enrichments=3))
    @examples(2)
    @pytest.mark.filterwarnings("ignore")
    def test_the_macro_agrees_with_plain_joins(self, project, data, cube):
        warehouse = Path(project.project_root) / "warehouse"
        schema = f"s{len(list(warehouse.glob('*')))}"
        store = LocalStore(warehouse / schema)
        write(store, cube)
        names = tuple(dataset.name for dataset in cube)
        add_view(store, ViewDocument("c", "cube", cube="c", datasets=names))
        types = columns_of(cube)
        asked = {}
        for number in range(QUESTIONS):
            condition = data.draw(conditions(cube))
            columns = data.draw(st.permutations(list(types)))
            text = MODEL.format(schema=schema, columns=columns, where=condition.text)
            write_file(text, project.project_root, "models", f"q{number}.sql")
            asked[f"q{number}"] = condition, columns
        for result in run_dbt(["compile"]):
            condition, columns = asked[result.node.name]
            found = project.run_sql(result.node.compiled_code, fetch="all")
            rows = [
                {c: in_class(v, types[c]) for c, v in zip(columns, row, strict=True)}
                for row in found
            ]
            expected = [row for row in answer(cube) if condition.holds(row) is True]
            assert comparable(rows, columns) == comparable(expected, columns), condition.text


def in_class(value: object, t: pa.DataType) -> object:
    """A value of a Spark row as Arrow has it."""
    if isinstance(value, Decimal) and pa.types.is_unsigned_integer(t):
        return int(value)
    if isinstance(value, datetime.datetime) and getattr(t, "tz", None):
        return value.astimezone(datetime.UTC)  # Spark gives the machine's own time
    if isinstance(value, Row):
        return value.asDict()
    if isinstance(value, dict):
        return list(value.items())
    return value
