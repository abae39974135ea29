"""Copies of cubes and tables: the same rows under other names, one commit, or nothing."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import (
    ConfigurationError,
    ConsistencyError,
    DatasetNotFoundError,
    FormatError,
    SpecificationError,
    StoreError,
)
from ktk_engine.maintain.check import check
from tests.support.kartothek import (
    PLACES,
)
from tests.support.stores import FaultyStore, tree

ROWS = pa.table(
    {
        "p": [*PLACES, "é"],
        "x": range(6),
        "v": [1.5, None, float("nan"), -0.0, 2, 3],
        "k": ["", "a/b", "%", "ü", "k", "k"],
    }
)
LAYOUT = {"dimension_columns": ["x"], "partition_by": ["p"], "seed": "cells", "indexes": ["k"]}


@pytest.fixture
def cube(tmp_path):
    store = Store(tmp_path / "source")
    cube = store.build("c", {"cells": ROWS, "more": ROWS.select(["x"])}, **LAYOUT)
    cube = cube.append({"cells": ROWS.slice(2, 2).set_column(2, "v", pa.array([7.0, 8.0]))})
    return cube.delete("x = 0")


@pytest.fixture
def target(tmp_path):
    return Store(tmp_path / "target")


def rows(cube, **question):
    return repr(cube.query(**question).to_arrow(engine="local").to_pylist())


def test_a_copy_has_the_same_rows_and_indices(cube, target):
    copy = cube.copy_to(target)
    assert (copy.name, copy.version, copy.datasets) == ("c", 1, cube.datasets)
    assert rows(copy) == rows(cube)
    assert copy.specification == cube.specification
    for where in ("k = 'k'", "k = ''", "x = 3", "p = 'a/b'"):
        assert rows(copy, where=where) == rows(cube, where=where)
    assert check(target._store, "c", deep=True).problems == ()
    (entry,) = copy.history()
    assert entry["history"]["reason"] == "copied version 3 of c"
    assert copy.append({"cells": ROWS.slice(0, 1)}).query().count() == 6


def test_names(cube, target):
    copy = cube.copy_to(cube._store, "d", rename={"more": "else"})
    assert (copy.name, copy.datasets, rows(copy)) == ("d", ["cells", "else"], rows(cube))
    part = cube.copy_to(target.url, datasets=["cells"])
    assert part.datasets == ["cells"]
    assert cube.at(version=1).copy_to(target, "old").query().count() == 6
    with pytest.raises(ConsistencyError, match="onto itself"):
        cube.copy_to(cube._store, overwrite=True)
    with pytest.raises(DatasetNotFoundError, match=r"no dataset cels\. Did you mean"):
        cube.copy_to(target, datasets=["cels"])
    with pytest.raises(DatasetNotFoundError, match="no dataset z"):
        cube.copy_to(target, rename={"z": "y"})
    with pytest.raises(ConfigurationError, match="Two datasets would both be cells"):
        cube.copy_to(target, "e", rename={"more": "cells"})
    with pytest.raises(SpecificationError, match="may only hold"):
        cube.copy_to(target, "é")


def test_what_is_there_is_replaced_only_if_asked(cube, target):
    cube.copy_to(target)
    before = tree(target._store.root)
    with pytest.raises(ConsistencyError, match=r"has c\+\+cells, c\+\+more already"):
        cube.copy_to(target)
    other = cube._store.build("o", {"cells": ROWS.rename_columns(["p", "x", "x2", "k"])}, **LAYOUT)
    with pytest.raises(ConsistencyError, match="already"):
        other.copy_to(target, "c", datasets=["cells"])
    assert tree(target._store.root) == before
    changed = cube.append({"cells": ROWS.slice(0, 1)})
    assert rows(changed.copy_to(target, overwrite=True)) == rows(changed)
    assert rows(target.cube("c", version=1)) == rows(cube)


def test_what_does_not_fit_the_target_is_refused_before_a_file_is_copied(cube, target):
    target.build(
        "c", {"cells": pa.table({"p": ["a"], "x": [1]}), "w": pa.table({"x": [1], "v": [1]})},
        dimension_columns=["x"], partition_by=["p"], seed="cells",
    )  # fmt: skip
    before = tree(target._store.root)
    with pytest.raises(ConsistencyError, match=r"\bv\b"):
        cube.copy_to(target, datasets=["cells"], overwrite=True)
    assert tree(target._store.root) == before


def test_a_damaged_file_is_named_and_nothing_is_left(cube, target):
    key = next(
        info.key
        for info in cube._store._store.list("c++cells/table/")
        if info.key.endswith(".parquet") and "p=k" not in info.key
    )
    live = cube._loaded.snapshots["cells"].files["key"].to_pylist()
    key = live[0]
    path = cube._store._store.root / key
    data = bytearray(path.read_bytes())
    data[5] ^= 1
    path.write_bytes(data)
    with pytest.raises(FormatError, match="is damaged") as caught:
        cube.copy_to(target)
    assert key in str(caught.value)
    assert [info.key for info in target._store.list() if "c++" in info.key] == []
    assert target.cubes() == []


@pytest.mark.parametrize("error", [StoreError("no"), KeyboardInterrupt()])
def test_a_failure_leaves_the_target_as_it_was(cube, tmp_path, error):
    """Whatever put fails until the commit, and when the user stops it."""
    refused = 0
    for failing in range(1, 100):
        store = FaultyStore(tmp_path / f"t{failing}")
        target = Store.of(store)
        target.build("other", ROWS, dimension_columns=["x"])
        before, calls = tree(store.root), []

        def fail(method, key, calls=calls, failing=failing):
            if method.startswith(("put", "open_write")):
                calls.append(key)
                if len(calls) == failing:
                    raise error

        store.hooks.append(fail)
        with suppress(StoreError, KeyboardInterrupt):
            cube.copy_to(target)
        store.hooks.clear()
        if any("c/log/" in key for key in calls[:failing]):
            break  # from here on nobody knows, and nothing is deleted
        # A claim, and notes of names, which count no more.
        after = {
            key: data
            for key, data in tree(store.root).items()
            if key in before or not key.startswith((".ktk/name/c", ".ktk/relation/"))
        }
        assert after == before, calls[-1]
        refused += 1
    assert refused > 4


def test_tables(target, tmp_path):
    store = Store(tmp_path / "source")
    table = store.write_table("t", ROWS, partition_by=["p"], indexes=["k"])
    copy = table.copy_to(target, "u")
    assert (copy.name, copy.rows) == ("u", 6)
    found = copy.query(where="k = 'ü'").to_arrow()
    assert found["x"].to_pylist() == [3]
    assert check(target._store, "u", deep=True).problems == ()
    with pytest.raises(ConsistencyError, match="has u already"):
        table.copy_to(target, "u")
    assert table.copy_to(store, "t2").rows == 6


def test_command(cube, target, ktk):
    path = str(target._store.root)

    def copy(*options, code=0):
        source = cube._store._store.root
        return ktk("copy", "c", path, *options, at=source, code=code).output

    assert "Would copy c++cells, c++more: 8 files" in copy("--dry-run")
    assert target.cubes() == []
    assert "is at version 1." in copy("--name", "n", "--include", "ce*", "--rename", "cells=z")
    assert target.cube("n").datasets == ["z"]
    assert "not OLD=NEW" in copy("--rename", "cells", code=2)
    assert "is at version 1." in copy("--version", "1")
    assert target.cube("c").query().count() == 6
