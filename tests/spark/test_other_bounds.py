"""Bounds of other programs' files: whatever they say, no row is lost, whoever looks at them."""

from __future__ import annotations

import math
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine import Store
from tests.support.changes import plan_adoption, run_adoption
from tests.support.dataset_builder import write_plain
from tests.support.documents import load_document
from tests.support.other_bounds import change_bounds
from tests.support.queries import FileAddress

TABLE = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "i": pa.array([11, 12, 21, 22, 31, 32], pa.int64()),
        "n": pa.array([1.5, 2.5, 3.5, 4.5, 5.5, 6.5], pa.float64()),
        "z": pa.array([-0.0, -0.0, 7.5, 8.5, 9.5, math.nan], pa.float64()),
        "s": ["aaaaaa", "bbbxyz", "cccccc", "dddxyz", "eeeeee", "fffxyz"],
        "b": [b"aaaaaA", b"bbbxyZ", b"cccccC", b"dddxyZ", b"eeeeeE", b"fffxyZ"],
    }
)


def _int(number: int) -> bytes:
    return struct.pack("<q", number)


def _float(number: float) -> bytes:
    return struct.pack("<d", number)


def _swapped(low: bytes, high: bytes) -> dict[bytes, bytes]:
    return {low: high, high: low}


# As known writers write them: the wrong way round, not a number, cut without being raised.
CHANGED = {
    **_swapped(_int(11), _int(12)),
    **_swapped(_int(31), _int(32)),
    **_swapped(_float(1.5), _float(2.5)),
    _float(3.5): _float(math.nan),
    _float(6.5): _float(math.nan),
    _float(-0.0): _float(0.0),
    b"bbbxyz": b"bbb",
    b"dddxyz": b"ddd",
    **_swapped(b"eeeeee", b"fffxyz"),
    b"bbbxyZ": b"bbb",
    **_swapped(b"eeeeeE", b"fffxyZ"),
}
CONDITIONS = {
    "i = 11": [0],
    "i = 12": [1],
    "i > 31": [5],
    "i in (11, 32)": [0, 5],
    "i < 12": [0],
    "n = 1.5D": [0],
    "n > 2": [1, 2, 3, 4, 5],
    "n = 3.5D": [2],
    "n = 6.5D": [5],
    "n < 2": [0],
    "z = 0.0D": [0, 1],
    "z = -0.0D": [0, 1],
    "z > 9": [4, 5],
    "z = double('NaN')": [5],
    "z <= 0.0D": [0, 1],
    "s = 'bbbxyz'": [1],
    "s >= 'ddd1'": [3, 4, 5],
    "s like 'dddx%'": [3],
    "s in ('bbbxyz', 'eeeeee')": [1, 4],
    "s = 'fffxyz'": [5],
    "b = X'62626278795A'": [1],
    "b = X'66666678795A'": [5],
}

# Here nothing is compared with NaN, and Arrow finds it larger than no number.
NO_NAN = {c: ids for c, ids in CONDITIONS.items() if c != "z > 9" and "NaN" not in c}


@pytest.fixture(params=["another program's", "adopted"])
def table(request, store):
    write_plain(store, "t", TABLE)
    (key,) = load_document(store, "t").partitions.values()
    path = store.root / key
    pq.write_table(TABLE, path, row_group_size=2)
    change_bounds(path, CHANGED)
    if request.param == "adopted":
        run_adoption(plan_adoption(store, "t"))
    return store


def test_spark_finds_every_row(sql, table):
    ways = enumerate(CONDITIONS)
    text = " union all ".join(
        f"select {number} as number, collect_list(id) as ids from an.t where {condition}"
        for number, condition in ways
    )
    found = {row.number: sorted(row.ids) for row in sql.sql(text).collect()}
    assert {c: found[number] for number, c in enumerate(CONDITIONS)} == CONDITIONS


def test_this_process_finds_every_row(table):
    opened = Store(table.url).table("t")
    found = {}
    for condition in NO_NAN:
        asked = opened.query(["id"], condition).to_arrow(engine="local")
        found[condition] = sorted(asked["id"].to_pylist())
    assert found == NO_NAN


def test_plain_files(sql, tmp_path):
    path = tmp_path / "plain" / "a.parquet"
    path.parent.mkdir()
    pq.write_table(TABLE, path, row_group_size=2)
    change_bounds(path, CHANGED)
    name = f"`{FileAddress(str(path.parent), 'parquet')}`.raw.t"
    found = {
        condition: sorted(
            row.id for row in sql.sql(f"select id from {name} where {condition}").collect()
        )
        for condition in CONDITIONS
    }
    assert found == CONDITIONS
