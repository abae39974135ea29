"""Spark writes and reads object stores in tasks, which know nothing but pyarrow."""

from __future__ import annotations

import pytest

from ktk_engine.catalog.view import ViewDocument, render_view, view_key
from ktk_engine.facade import Store
from ktk_engine.gate.target import Target
from ktk_engine.maintain.check import check
from ktk_engine.spark.session.session import new_session
from ktk_engine.spark.sql.sql_session import SqlSession
from ktk_engine.write.build import build
from ktk_engine.write.retained import Retained

CELLS = Target("cells", "seed", "c", ("id",), ("p",), indexes=("half",))
EXTRA = Target("extra", "enrichment", "c", ("id",))
TABLE = Target("t", partition_by=("p",))


@pytest.mark.parametrize("kind", ["s3", "azure", "gcs"])
def test_written_and_read_by_tasks(request, spark, kind, tmp_path):
    store = request.getfixturevalue(f"{kind}_store")
    sql = SqlSession(
        new_session(spark), lambda name: store if name == "an" else None, tmp_path / "scratch"
    )

    def rows(text):
        return [tuple(row) for row in sql.sql(text).collect()]

    select = "select id, cast(id % 3 as string) as p, id div 2 as half from range({})"
    build(store, sql.sql(select.format("0, 60")), CELLS)
    build(store, sql.sql("select id, id * 2 as v from range(10, 60)"), EXTRA)
    build(store, sql.sql(select.format("60, 90")), CELLS, retained=Retained("append"))
    store.put(view_key("c"), render_view(ViewDocument("c", "cube", cube="c")))
    expected = [(90, sum(2 * n for n in range(10, 60)), sum(n // 2 for n in range(90)))]
    assert rows("select count(*), sum(v), sum(half) from an.c") == expected
    assert rows("select id, v from an.c where half = 20 order by id") == [(40, 80), (41, 82)]
    # One dataset alone, which Spark's own reader would read from a folder.
    assert rows("select count(*), sum(id) from an.cells where p = '1'") == [(30, 1335)]
    build(store, sql.sql("select p, count(*) as n from an.cells group by p"), TABLE)
    assert rows("select * from an.t order by p") == [("0", 30), ("1", 30), ("2", 30)]
    query = Store.of(store).cube("c").query(["id", "v"], "id > 57")
    assert query.to_arrow(spark, engine="spark").num_rows == 32
    assert not check(store, "c", deep=True).problems
    assert not [info.key for info in store.list() if info.size == 0 and "published" not in info.key]
