"""Cases of copies, in the form of those of Kartothek's suite: what it reads of a copy of ours."""

from __future__ import annotations

import pandas as pd
import pandas.testing
import pytest
from kartothek.api.discover import discover_cube, discover_datasets
from kartothek.core.cube.conditions import C
from kartothek.core.cube.cube import Cube
from kartothek.io.eager_cube import append_to_cube, build_cube, query_cube

CUBE = Cube(["x"], ["p"], "cube", index_columns=["i"])
SEED = pd.DataFrame({"x": range(4), "p": [0, 0, 1, 1], "v1": range(4), "i": list("abab")})
ENRICH = pd.DataFrame({"x": range(4), "p": [0, 0, 1, 1], "v2": range(4)})


@pytest.fixture
def cube(function_store):
    build_cube({"seed": SEED, "enrich": ENRICH}, CUBE, function_store)
    append_to_cube({"seed": SEED[:1].assign(v1=7, i="c")}, CUBE, function_store)
    return CUBE


def content(store):
    return {key: store().get(key) for key in store().iter_keys()}


def same(cube, copy, store, target):
    """Whether rows are the same, also those that an index finds."""
    for conditions in (None, C("i") == "b", C("i") == "c", C("p") == 1):
        (theirs,) = query_cube(cube, store, conditions=conditions)
        (ours,) = query_cube(copy, target, conditions=conditions)
        pandas.testing.assert_frame_equal(ours, theirs)


@pytest.mark.parametrize("datasets", [None, ["seed", "enrich"]])
def test_all_of_it(driver, function_store, function_store2, cube, datasets):
    before = content(function_store)
    driver(cube, function_store, function_store2, datasets=datasets)
    same(cube, cube, function_store, function_store2)
    assert content(function_store) == before


@pytest.mark.parametrize("prefix", [None, "other"])
@pytest.mark.parametrize("names", [None, {"enrich": "augmented"}, {"seed": "cells"}])
def test_other_names(driver, function_store, function_store2, cube, prefix, names):
    driver(
        cube, function_store, function_store2, renamed_cube_prefix=prefix, renamed_datasets=names
    )
    copy, datasets = discover_cube(prefix or "cube", function_store2)
    expected = {(names or {}).get(name, name) for name in ("seed", "enrich")}
    assert set(datasets) == expected and copy.index_columns == {"i"}
    same(cube, copy, function_store, function_store2)


def test_a_name_within_another_is_left_alone(driver, function_store, function_store2, cube):
    """Kartothek renames `enrich2` with `enrich`."""
    more = ENRICH.rename(columns={"v2": "v3"})
    build_cube(
        {"seed": SEED, "enrich": ENRICH, "enrich2": more}, CUBE, function_store, overwrite=True
    )
    driver(cube, function_store, function_store2, renamed_datasets={"enrich": "foo"})
    assert set(discover_datasets(cube, function_store2)) == {"seed", "foo", "enrich2"}


def test_within_one_store(driver, function_store, cube):
    driver(cube, function_store, function_store, renamed_cube_prefix="other")
    same(cube, discover_cube("other", function_store)[0], function_store, function_store)


def test_what_is_there_is_replaced(driver, function_store, function_store2, cube):
    build_cube({"seed": SEED[:1], "enrich": ENRICH[:1]}, CUBE, function_store2)
    driver(cube, function_store, function_store2, overwrite=True)
    same(cube, cube, function_store, function_store2)


def test_a_part_beside_what_is_there(driver, function_store, function_store2, cube):
    build_cube({"seed": SEED}, CUBE, function_store2)
    build_cube({"seed": SEED}, CUBE.copy(uuid_prefix="other"), function_store2)
    before = content(function_store2)
    driver(cube, function_store, function_store2, datasets=["enrich"])
    assert set(discover_datasets(cube, function_store2)) == {"seed", "enrich"}
    (rows,) = query_cube(cube, function_store2)
    assert rows["v2"].tolist() == [0, 1, 2, 3]
    others = {key: value for key, value in before.items() if key.startswith("other++")}
    assert others.items() <= content(function_store2).items()


def test_a_store_that_cannot_be_written(
    driver, function_store, function_store_ro, function_store2, cube
):
    driver(cube, function_store_ro, function_store2)
    same(cube, cube, function_store, function_store2)
