"""What a new user types first: completion, help, the version, and names of other libraries."""

from __future__ import annotations

import copy
import re

import pyarrow as pa
import pytest

import ktk_engine
from ktk_engine import Store
from ktk_engine.api.names_elsewhere import OF_CUBE_OR_TABLE, OF_QUERY


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    rows = pa.table({"order_id": [1, 2], "amount": [20.0, 35.0]})
    store.build("shop", rows, dimension_columns=["order_id"])
    store.write_table("t", rows)
    return store


def test_the_package_shows_only_what_is_for_users():
    assert [name for name in dir(ktk_engine) if not name.startswith("_")] == ["Store"]
    assert re.match(r"\d+\.\d+", ktk_engine.__version__)


def test_the_example_in_help_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    orders = pa.table({"order_id": [1, 2], "amount": [20.0, 35.0]})
    code = "\n".join(
        line.strip() for line in ktk_engine.__doc__.splitlines() if line[:4] == " " * 4
    )
    exec(code, {"orders": orders})


@pytest.mark.parametrize("kind", ["cube", "table", "query"])
def test_each_hint_runs_literally(store, kind):
    """An attribute that other libraries have says what to call here, and that works."""
    owner = store.table("t") if kind == "table" else store.cube("shop")
    known = OF_QUERY if kind == "query" else OF_CUBE_OR_TABLE
    asked = owner.query() if kind == "query" else owner
    for name in known:
        with pytest.raises(AttributeError, match=f"no attribute '{name}': ") as error:
            getattr(asked, name)
        for call in re.findall(
            r"\.[\w.]+(?:\([^)]*\))?(?:\.[\w.]+(?:\([^)]*\))?)*", str(error.value)
        ):
            if "spark" in call:
                continue
            call = call.replace("..., ", "").replace("columns, where", "['amount'], 'amount > 1'")
            on = owner if call.startswith(".query") else asked
            eval(f"on{call}", {"on": on})


def test_what_a_write_changed_is_counted(store):
    def counts(owner):
        return [(c["dataset"], c["rows"], c["rows_delta"]) for c in owner.last_changes]

    more = pa.table({"order_id": [3, 4, 5], "amount": [1.0, 2.0, 3.0]})
    cube = store.cube("shop")
    assert counts(cube) == [("seed", 2, 2)]
    assert counts(cube.append({"seed": more})) == [("seed", 5, 3)]
    gone = cube.delete("order_id > 3")
    assert counts(gone) == [("seed", 3, -2)]
    assert counts(gone.update({"seed": more.slice(0, 1)}, "order_id = 3")) == [("seed", 3, 0)]
    assert counts(cube) == [("seed", 2, 2)]  # as it was opened
    assert counts(store.cube("shop", version=2)) == [("seed", 5, 3)]
    assert counts(store.write_table("t", more)) == [("t", 5, 3)]
    assert counts(store.table("t").delete("amount = 1")) == [("t", 4, -1)]


def test_objects_without_a_length(store):
    for owner in (store.cube("shop"), store.table("t")):
        assert owner
        with pytest.raises(TypeError, match=r"use \.query\(\)\.count\(\)"):
            len(owner)
        assert owner.query().count() == 2


def test_unknown_names_are_errors_as_ever(store):
    cube = store.cube("shop")
    for owner in (cube, cube.query()):
        assert not hasattr(owner, "nonsense")
        assert copy.copy(owner).__class__ is owner.__class__
