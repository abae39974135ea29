"""A statement that needs no Spark starts none."""

from __future__ import annotations

import pyarrow as pa

from dbt.adapters.ktk.connections import KtkCursor
from dbt.adapters.ktk.session.sessions import Sessions
from ktk_engine import Store
from tests.support.stores import Warehouse


def test_alter_table_starts_no_spark(tmp_path):
    sessions = Sessions(Warehouse(str(tmp_path)), {})
    Warehouse(str(tmp_path)).create_schema("s")
    store = Store(tmp_path / "s")
    store.write_table("t", pa.table({"a": [1]}))
    cursor = KtkCursor(sessions)
    cursor.execute('/* {"app": "dbt"} */ alter table s.t rename column a to b;')
    cursor.execute("comment on table s.t is 'x'")
    assert (cursor.fetchall(), cursor.description) == ([], [])
    assert store.table("t").schema.names == ["b"]
    assert sessions._spark is None
