"""Random cubes and queries give the same rows as plain joins, in Python and in SQL."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.ktk.operations.cube_query import cube_query_text
from ktk_engine import Store
from ktk_engine.spark.arrow_types import spark_type
from ktk_engine.spark.compatibility import collect_table
from ktk_engine.spark.frames import frame_of_table
from ktk_engine.spark.read.collect import in_containers
from tests.support.documents import ViewDocument, add_view
from tests.support.queries import Plan
from tests.support.random_cubes import (
    RandomDataset,
    answer,
    columns_of,
    comparable,
    conditions,
    cubes,
    examples,
    write,
)
from tests.support.spark import statements
from tests.support.stores import LocalStore

QUESTIONS = 3


def create_view(store: LocalStore, cube: list[RandomDataset]) -> None:
    names = tuple(dataset.name for dataset in cube)
    add_view(store, ViewDocument("c", "cube", cube="c", datasets=names))


def as_classes(table: pa.Table, plan: Plan) -> list[dict]:
    return in_containers(table, plan).to_pylist()


@pytest.mark.usefixtures("few_rows")
@pytest.mark.filterwarnings("ignore")
@given(data=st.data(), cube=cubes())
@examples(8)
def test_python_and_sql_agree_with_plain_joins(spark, sql, tmp_path_factory, data, cube):
    store = LocalStore(tmp_path_factory.mktemp("random") / "an")
    write(store, cube)
    create_view(store, cube)
    check_questions(spark, sql, store, data, cube)


@pytest.mark.usefixtures("few_rows")
@pytest.mark.filterwarnings("ignore")
@given(data=st.data(), cube=cubes(enrichments=2))
@examples(3)
def test_the_same_as_spark_writes_them(spark, sql, tmp_path_factory, data, cube):
    store = LocalStore(tmp_path_factory.mktemp("random") / "an")

    def frame(table: pa.Table):
        types = {f.name: spark_type(f.type) for f in table.schema}
        unsigned = [f.name for f in table.schema if pa.types.is_unsigned_integer(f.type)]
        for name in unsigned:
            position = table.schema.get_field_index(name)
            table = table.set_column(position, name, table[name].cast(pa.decimal128(20, 0)))
        rows = frame_of_table(spark, table)
        return rows.select(*[rows[name].cast(t).alias(name) for name, t in types.items()])

    write(store, cube, frame)
    create_view(store, cube)
    check_questions(spark, sql, store, data, cube)


def check_questions(spark, sql, store, data, cube) -> None:
    """Ask some questions in Python, in SQL and as `cube_query` writes them."""
    session = statements(sql.session, store, sql.scratch)
    whole = answer(cube)
    for number in range(QUESTIONS):
        condition = data.draw(conditions(cube))
        columns = data.draw(st.permutations(list(columns_of(cube))))
        kept = [row for row in whole if condition.holds(row) is True]
        expected = comparable(kept, columns)
        query = Store(store.root).cube("c").query(columns, condition.text)
        found = query.to_arrow(spark).to_pylist()
        assert comparable(found, columns) == expected, condition.text
        listed = ", ".join(columns)
        texts = [
            cube_query_text("an.c", columns, condition.text, None, None, ()),
            f"with w as (select * from an.c) select {listed} from w where {condition.text}",
        ]
        found = as_classes(collect_table(session.sql(texts[number % 2])), query.plan)
        assert comparable(found, columns) == expected, condition.text
    check_fewer_dimensions(spark, store, cube, whole)


def check_fewer_dimensions(spark, store, cube, whole) -> None:
    """The distinct cells of what is left."""
    first = cube[0].dimensions[:1]
    address = [*first, *cube[0].partitions]
    query = Store(store.root).cube("c").query(address, dimension_columns=first)
    found = comparable(query.to_arrow(spark).to_pylist(), address)
    assert found == sorted(set(comparable(whole, address)))
