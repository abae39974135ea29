"""Cases of removed partitions, in the form of those of Kartothek's suite; for Python 3.8."""

from __future__ import annotations

import pandas as pd
import pytest
from kartothek.api.discover import discover_datasets
from kartothek.core.cube.conditions import C
from kartothek.core.cube.cube import Cube
from kartothek.io.eager import read_table
from kartothek.io.eager_cube import build_cube

CUBE = Cube(["x"], ["p", "q"], "cube", seed_dataset="source", index_columns=["i"])
SOURCE = pd.DataFrame({"x": range(4), "p": [0, 0, 1, 1], "q": 0, "v": 1.5, "i": list("abcd")})
ENRICH = pd.DataFrame({"x": range(4), "p": [0, 0, 1, 1], "q": 0, "w": 2})


@pytest.fixture(params=["partitioned", "unpartitioned"])
def layout(request):
    return request.param


@pytest.fixture
def cube(function_store, layout):
    apart = layout == "unpartitioned"
    enrich = ENRICH.drop(columns=["p", "q"]) if apart else ENRICH
    build_cube(
        {"source": SOURCE, "enrich": enrich},
        CUBE,
        function_store,
        metadata={"source": {"mine": 1}},
        partition_on={"enrich": []} if apart else None,
    )
    return CUBE


def left(store, dataset):
    return sorted(read_table(CUBE.ktk_dataset_uuid(dataset), store)["x"])


def test_everything(driver, function_store, cube):
    datasets = driver(cube=cube, store=function_store)
    assert {name: len(found.partitions) for name, found in datasets.items()} == {
        "source": 0,
        "enrich": 0,
    }
    found = discover_datasets(cube, function_store)
    assert found["source"].metadata["mine"] == 1


def test_of_one_dataset(driver, function_store, cube):
    driver(cube=cube, store=function_store, conditions=C("p") > 0, ktk_cube_dataset_ids=["source"])
    assert left(function_store, "source") == [0, 1]
    assert left(function_store, "enrich") == [0, 1, 2, 3]
    indices = discover_datasets(cube, function_store)["source"].load_all_indices(function_store())
    assert set(indices.indices["i"].index_dct) == {"a", "b"}


def test_of_all_that_are_partitioned_so(driver, function_store, cube, layout):
    """Kartothek empties an enrichment without the column."""
    driver(cube=cube, store=function_store, conditions=C("p") == 1)
    assert left(function_store, "source") == [0, 1]
    assert left(function_store, "enrich") == ([0, 1] if layout == "partitioned" else [0, 1, 2, 3])


@pytest.mark.parametrize("condition", [C("p") > 10000, C("p").isin([]), C("q") == -1])
def test_of_none(driver, function_store, cube, condition):
    driver(cube=cube, store=function_store, conditions=condition)
    assert left(function_store, "source") == left(function_store, "enrich") == [0, 1, 2, 3]


def test_another_column_is_refused(driver, function_store, cube):
    with pytest.raises(ValueError, match="concerning cubes physical partition columns"):
        driver(
            cube=cube, store=function_store, conditions=C("v") > 0, ktk_cube_dataset_ids=["source"]
        )


def test_unknown_datasets_are_refused(driver, function_store, cube):
    with pytest.raises(ValueError, match="Unknown ktk_cube_dataset_ids: bar, foo"):
        driver(cube=cube, store=function_store, ktk_cube_dataset_ids=["foo", "bar", "source"])
