from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from ktk_engine.cube.consistency import check_cube
from ktk_engine.cube.discovery import discover_cube, find_seed
from ktk_engine.errors import ConsistencyError
from tests.support.dataset_builder import NYC


@dataclass
class Dataset:
    schema: pa.Schema
    partition_keys: tuple = ()
    metadata: dict = field(default_factory=dict)
    with_index: tuple = ()


def seed(**changes):
    schema = pa.schema(
        {"origin": pa.string(), "carrier": pa.string(), "hour": pa.int64(), "delay": pa.int64()}
    )
    indexed = ("carrier", "hour")
    given = {"schema": schema, "partition_keys": ("origin",), "with_index": indexed}
    return Dataset(**{**given, "metadata": NYC.metadata("flights"), **changes})


def enrichment(columns, partition_keys=(), indices=()):
    metadata = NYC.metadata("other")
    return Dataset(pa.schema(columns), partition_keys, metadata, tuple(indices))


GOOD = {"hour": pa.int64(), "gust": pa.float64()}


def test_discovered():
    datasets = {"flights": seed(), "weather": enrichment(GOOD, indices=["gust"])}
    cube = discover_cube("nyc", datasets)
    assert (cube.dimension_columns, cube.partition_columns) == (("carrier", "hour"), ("origin",))
    assert (cube.seed_dataset, cube.index_columns) == ("flights", {"gust"})
    check_cube("nyc", datasets, cube)


def test_old_cubes():
    keys = ("origin", "KLEE_TS")
    metadata = {"klee_is_seed": True, "klee_dimension_columns": ["hour"]}
    schema = pa.schema({"origin": pa.string(), "KLEE_TS": pa.timestamp("us"), "hour": pa.int64()})
    old = Dataset(schema, keys, metadata, {"hour": "k", "KLEE_TS": "k"})
    cube = discover_cube("nyc", {"seed": old})
    assert cube.partition_columns == ("origin",)
    assert cube.index_columns == frozenset()
    with pytest.raises(ConsistencyError, match="do not end in KLEE_TS"):
        discover_cube("nyc", {"seed": Dataset(schema, ("origin",), metadata)})


def test_seeds():
    assert find_seed("nyc", {"weather": enrichment(GOOD)}) is None
    with pytest.raises(ConsistencyError, match="no seed dataset yet"):
        discover_cube("nyc", {"weather": enrichment(GOOD)})
    with pytest.raises(ConsistencyError, match=r"datasets: a, b.*store.cube\('nyc'\).drop\('b'\)"):
        find_seed("nyc", {"a": seed(), "b": seed()})


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (enrichment({"hour": pa.int64(), "delay": pa.int64()}), "`delay` is in several datasets"),
        (enrichment({"hour": pa.string(), "gust": pa.int64()}), "`hour` is signed"),
        (enrichment({"gust": pa.int64()}), "none of the cube's dimension columns"),
        (enrichment({"hour": pa.int64(), "origin": pa.string()}), "as ordinary columns"),
    ],
)
def test_violations(dataset, message):
    with pytest.raises(ConsistencyError, match=message):
        check_cube("nyc", {"flights": seed(), "other": dataset}, NYC)


def test_all_violations_are_told_at_once():
    bad = seed(partition_keys=(), with_index=())
    with pytest.raises(ConsistencyError) as caught:
        check_cube("nyc", {"flights": bad}, NYC)
    text = str(caught.value)
    assert "not partitioned by `origin`" in text
    assert "no index on `carrier`, `hour`, where the dimension columns of a seed dataset" in text
    assert ".index('carrier', 'hour') builds it" in text


def test_without_a_seed_the_enrichments_are_compared():
    one, two = enrichment(GOOD), enrichment({"hour": pa.int64(), "gust": pa.float64()})
    with pytest.raises(ConsistencyError, match="`gust` is in several datasets: one, two"):
        check_cube("nyc", {"one": one, "two": two}, None)


def test_a_seed_whose_schema_lacks_a_dimension_is_named():
    """A flipped bit in Kartothek's schema file gave a KeyError."""
    schema = pa.schema({"origin": pa.string(), "hour": pa.int64()})
    with pytest.raises(ConsistencyError, match="lacks carrier"):
        discover_cube("nyc", {"flights": seed(schema=schema)})
