"""A partition value that its class does not hold: the cube opens, and who needs it is told."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import FormatError
from tests.support.changes import WriteRequest, build
from tests.support.unreadable_value import BAD, DAYS, write_cube


def opened(cube, where):
    return {item.dataset: item.files.num_rows for item in cube.query(where=where).plan.datasets}


def test_the_cube_opens_and_plans_keep_the_file_where_its_value_could_matter(store):
    write_cube(store)
    cube = Store(store.root).cube("c")
    for where in (
        f"day = timestamp_ntz '{DAYS[0]}'",
        f"day != timestamp_ntz '{DAYS[0]}'",
        f"not (day = timestamp_ntz '{DAYS[0]}')",
        "day is null",
        "w = 20",
    ):
        assert all(opened(cube, where).values()), where
    assert opened(cube, f"day = timestamp_ntz '{DAYS[0]}'") == {"seed": 2, "more": 2}


def test_nothing_is_written_on_top(store):
    write_cube(store)
    before = sorted(path for path in store.root.rglob("*") if path.is_file())
    target = WriteRequest("other", "enrichment", "c", ("L",))
    with pytest.raises(FormatError, match=rf"1 files .* column `day` .*{BAD}.*nanoseconds"):
        build(store, pa.table({"L": [1], "x": [1]}), target)
    assert sorted(path for path in store.root.rglob("*") if path.is_file()) == before
