"""Spark reads what was altered as this process does."""

from __future__ import annotations

import datetime
import decimal

import pyarrow as pa
import pytest

from ktk_engine import Store
from tests.support.changes import WriteRequest, build
from tests.support.queries import mismatch

ROWS = pa.table(
    {
        "p": ["a/b", "50%", "größe"],
        "n": pa.array([1, None, 3], pa.int8()),
        "u": pa.array([2**64 - 1, 0, None], pa.uint64()),
        "d": [decimal.Decimal("1.10"), None, decimal.Decimal("-2.25")],
        "t": pa.array([datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), None, None]),
        "none": pa.nulls(3),
        "list": [[1], [], None],
    }
)
CHANGES = (
    {"add": {"x": "decimal(5,1)", "y": "array<struct<a: int, b: string>>", "z": "uint32"}},
    {"rename": {"u": "größer %", "list": "l`x"}},
    {"drop": ["d"]},
    {"add": {"d": "string"}},
)


@pytest.mark.parametrize("appended", [False, True])
def test_each_change(store, sql, appended):
    build(store, ROWS, WriteRequest("t", partition_by=("p",), indexes=("n",)))
    table = Store.of(store).table("t")
    for change in CHANGES:
        assert sql.sql("select count(*) from an.t").collect()
        table = table.alter(**change)
        if appended:
            kept = [item.name for item in ROWS.schema if fits(item, table.schema)]
            own = ROWS.select(kept)
            missing = [name for name in table.schema.names if name not in own.schema.names]
            for name in missing:
                own = own.append_column(name, pa.nulls(3, table.schema.field(name).type))
            build(store, own, WriteRequest.of(table._loaded.snapshot), mode="append")
            table = table.at()
        frame = sql.sql("select * from an.t")
        assert frame.columns == table.schema.names
        found = table.query().to_arrow(engine="local").to_pylist()
        assert in_order(row.asDict(recursive=True) for row in frame.collect()) == in_order(found)


def fits(item, schema):
    return item.name in schema.names and not mismatch(schema.field(item.name).type, item.type)


def in_order(rows):
    """Unsigned integers are decimals in Spark."""
    return sorted(repr([plain(value) for value in row.values()]) for row in rows)


def plain(value):
    return float(value) if isinstance(value, decimal.Decimal | int) else value
