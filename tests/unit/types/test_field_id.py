"""Ids of columns in files: the same for all time, at any depth, in place of others."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from ktk_engine.types.field_id import field_id, foreign_ids, with_field_ids

# Stored files have these ids: none may ever change.
IDS = {
    pa.bool_(): 1604876768,
    pa.int8(): 1303556738,
    pa.uint64(): 1453287558,
    pa.float32(): 118236580,
    pa.decimal128(5, 2): 1271048426,
    pa.string(): 1850545562,
    pa.binary(): 1020447764,
    pa.binary(4): 647479279,
    pa.date32(): 76596843,
    pa.time64("us"): 1327595255,
    pa.timestamp("us"): 239106749,
    pa.timestamp("us", "UTC"): 425780108,
    pa.timestamp("us", "Europe/Berlin"): 185121364,
    pa.null(): 1683514685,
    pa.list_(pa.int8()): 677633432,
    pa.struct({"a": pa.int8()}): 1579978894,
    pa.map_(pa.string(), pa.int8()): 370963124,
}
NESTED = pa.list_(pa.struct({"a": pa.map_(pa.string(), pa.int64())}))


def test_ids_never_change():
    assert {t: field_id(("x",), t) for t in IDS} == IDS
    assert field_id(("x", "y"), pa.int8()) == 34539714


@pytest.mark.parametrize(
    ("same", "others"),
    [
        ([pa.int8(), pa.int64()], [pa.uint8(), pa.float64()]),
        ([pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())], [pa.binary()]),
        ([pa.decimal128(5, 2), pa.decimal128(38, 2)], [pa.decimal128(5, 1)]),
        ([pa.list_(pa.int8()), pa.large_list(pa.string()), pa.list_(pa.int8(), 2)], [pa.string()]),
        ([pa.timestamp("us", "UTC"), pa.timestamp("ns", "Etc/UTC")], [pa.timestamp("us")]),
        ([pa.binary(4)], [pa.binary(), pa.binary(5)]),
    ],
)
def test_types_that_may_be_one_column_have_one_id(same, others):
    assert len({field_id(("x",), t) for t in same}) == 1
    assert len({field_id(("x",), t) for t in (same[0], *others)}) == 1 + len(others)


def test_every_depth_has_ids_and_files_keep_them(tmp_path):
    store = Store(tmp_path / "s")
    column = pa.array([[{"a": [("k", 1)]}], None], NESTED)
    wrong = pa.field("x", NESTED, metadata={"PARQUET:field_id": "1", "other": "y"})
    rows = pa.table({"x": column, "f": [float("nan"), 1.0]})
    store.write_table("t", rows.cast(pa.schema([wrong, *list(rows.schema)[1:]])))
    [file] = (tmp_path / "s" / "t" / "table").glob("*.parquet")
    schema = pq.read_schema(file)
    assert list(foreign_ids(schema)) == []
    given = re.findall(r"field_id: '(\d+)'", schema.to_string())
    assert given == re.findall(r"field_id: '(\d+)'", with_field_ids(schema).to_string())
    assert len(given) == len({"f", "x", "element", "a", "key", "value"})
    found = store.table("t").query().to_arrow(engine="local")
    assert all(field.metadata is None for field in found.schema)
