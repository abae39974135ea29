"""Singular and plural."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine.errors import DataError
from ktk_engine.formatting import counted
from tests.support.changes import WriteRequest, build


def test_counted():
    assert [counted(n, "row") for n in (0, 1, 2, 2000)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "2,000 rows",
    ]
    assert counted(1, "row repeats", "rows repeat") == "1 row repeats"
    assert counted(2, "row repeats", "rows repeat") == "2 rows repeat"


@pytest.mark.parametrize(
    ("values", "message"),
    [([1, 1], "- 1 row repeats a cell"), ([1, 1, 1], "- 2 rows repeat a cell")],
)
def test_refused_rows(store, values, message):
    seed = WriteRequest("s", "seed", "c", ("L",))
    with pytest.raises(DataError, match=message):
        build(store, pa.table({"L": values, "v": values}), seed)
    with pytest.raises(DataError, match="- 1 row has no value in `L`"):
        build(store, pa.table({"L": [None, 1], "v": [1, 1]}), seed)


def test_what_a_write_did(store):
    assert str(build(store, pa.table({"a": [1]}), WriteRequest("t"))).startswith("1 row, 1 file, ")
