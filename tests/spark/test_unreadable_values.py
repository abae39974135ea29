"""A partition value that its class does not hold: statements that need it fail, others do not."""

from __future__ import annotations

import pytest

from ktk_engine import Store
from tests.support.documents import ViewDocument, add_view
from tests.support.unreadable_value import BAD, DAYS, write_cube


@pytest.fixture
def cube(store):
    write_cube(store)
    add_view(store, ViewDocument("c", "cube", cube="c"))
    return store


def test_statements_on_a_dataset(sql, cube):
    rows = sql.sql("select L, v from an.seed order by L").collect()
    assert [tuple(row) for row in rows] == [(1, "a"), (2, "b")]
    assert sql.sql("select count(*) as n from an.seed").collect()[0].n == 2
    day = f"timestamp_ntz '{DAYS[0]}'"
    for text in (
        "select day from an.seed",
        f"select v from an.seed where day = {day}",
        f"select v from an.seed where day != {day}",
        "select v from an.seed where day is null",
        "select max(day) from an.seed",
        "select v, w from an.c",
    ):
        with pytest.raises(Exception, match="column `day` that cannot be read") as error:
            sql.sql(text).collect()
        assert BAD in str(error.value)
    assert sql.sql("select v from an.c").count() == 2


def test_queries(spark, cube):
    opened = Store(cube.root).cube("c")
    with pytest.raises(Exception, match="column `day` that cannot be read"):
        opened.query().to_arrow(spark)
