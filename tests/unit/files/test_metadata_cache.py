"""Of an index only the row groups are read that can hold a matching value."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ktk_engine.errors import FormatError
from ktk_engine.files import metadata_cache
from ktk_engine.files.metadata_cache import IndexCache
from ktk_engine.files.stored_index import get_index
from tests.support.documents import build_index, render_index
from tests.support.queries import comparison, is_in
from tests.support.stores import LocalStore

VALUES = 35_000  # four row groups


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path)


@pytest.fixture
def groups_read(monkeypatch):
    """The row groups that were read, one list a read."""
    seen = []

    def spy(store, key, digest, groups=None):
        seen.append((0, 1, 2, 3) if groups is None else groups)
        return get_index(store, key, digest, groups)

    monkeypatch.setattr(metadata_cache, "get_index", spy)
    return seen


def put(store, values):
    labels = pa.array([f"P={n % 7}/f" for n in range(len(values))])
    store.put("i.parquet", render_index("k", build_index(values, labels)))


@pytest.mark.parametrize(
    ("condition", "groups"),
    [
        (comparison("k", pa.int64(), "=", 25_000), (2,)),
        (comparison("k", pa.int64(), ">=", 30_000), (3,)),
        (is_in("k", pa.int64(), [1, 34_999]), (0, 3)),
        (comparison("k", pa.int64(), "<", 25_000), (0, 1, 2, 3)),  # most of it: all of it
        (comparison("k", pa.int64(), "=", -1), ()),
    ],
)
def test_row_groups_that_cannot_match_are_not_read(store, groups_read, condition, groups):
    put(store, pa.array(range(VALUES)))
    cache = IndexCache()
    for _ in range(2):
        found = cache.read(store, "i.parquet", "k", condition)
    assert groups_read == [groups]  # the second time it was known
    values = found["value"].to_pylist()
    assert set(values) <= set(range(VALUES))
    assert len(values) == sum(min(10_000, VALUES - 10_000 * n) for n in groups)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([float(n) for n in range(VALUES - 1)] + [float("nan")]),
        pa.array(["ü/%=" * 40 + str(n) for n in range(VALUES)]),
        pa.array(range(VALUES), pa.uint64()),
        pa.array(range(VALUES), pa.timestamp("us")),
    ],
    ids=["float", "string", "unsigned", "timestamp"],
)
def test_every_value_is_found(store, values):
    put(store, values)
    for value in (values[0], values[17_000], values[-1]):
        plain = value.as_py()
        operator = ">=" if plain != plain else "="
        plain = 1e300 if plain != plain else plain  # NaN is larger than any number
        condition = comparison("k", values.type, operator, plain)
        found = IndexCache().read(store, "i.parquet", "k", condition)["value"]
        assert pc.any(pc.is_nan(found) if operator == ">=" else pc.equal(found, value)).as_py()


def test_what_is_no_index_is_refused(store):
    store.put("i.parquet", b"PAR1")
    with pytest.raises(FormatError, match="damaged"):
        IndexCache().read(store, "i.parquet", "k", comparison("k", pa.int64(), "=", 1))
