"""A change that stands, and a store that does not answer any more: it is said that it stands."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.api.cube import Cube
from ktk_engine.api.opened_store import OpenedStore
from ktk_engine.api.table import Table
from ktk_engine.errors import KtkError, StoreError
from tests.support.committed import cube_scope, scope_of, version_of

CELLS = pa.table({"p": ["a/b=%", " ", "ü"], "x": [1, 2, 3], "d": ["", "%", "="]})
MORE = pa.table({"x": [1, 2], "w": ["x", "y"]})
NEW = pa.table({"p": ["ü"], "x": [4], "d": ["é"]})
LAYOUT = {"dimension_columns": ["x"], "partition_by": ["p"]}

CUBE_VERBS = {
    "extend": lambda cube: cube.extend({"other": MORE.rename_columns(["x", "u"])}),
    "append": lambda cube: cube.append({"seed": NEW}),
    "update": lambda cube: cube.update({"seed": NEW}, "p = 'ü'"),
    "delete": lambda cube: cube.delete("x = 1"),
    "remove_partitions": lambda cube: cube.remove_partitions("p = 'ü'"),
    "drop": lambda cube: cube.drop("more"),
    "alter": lambda cube: cube.alter("more", rename={"w": "u"}),
    "restore": lambda cube: cube.restore(1),
    "index": lambda cube: cube.index("w"),
    "drop_index": lambda cube: cube.drop_index("d"),
    "compact": lambda cube: cube.compact(),
    "publish": lambda cube: cube.publish("delta", "more"),
}
TABLE_VERBS = {
    "delete": lambda table: table.delete("x = 1"),
    "alter": lambda table: table.alter(drop=["d"]),
    "repartition": lambda table: table.repartition("p"),
}


@pytest.fixture
def opened(store):
    made = Store(store.root)
    cube = made.build("c", {"seed": CELLS, "more": MORE}, **LAYOUT, indexes=["d"])
    cube.append({"seed": NEW})
    made.write_table("t", CELLS)
    return made


@pytest.fixture
def silent_after(monkeypatch):
    """Let the store give no answer to who opens what was changed."""

    def opened(*_):
        raise StoreError("no answer")

    def call(change):
        with monkeypatch.context() as patch, pytest.raises(StoreError, match="no answer") as caught:
            patch.setattr(OpenedStore, "_load_cube", opened)
            patch.setattr(OpenedStore, "_load_table", opened)
            for kind in (Cube, Table):  # whose commit told what it left, which is opened again
                patch.setattr(kind, "_of", opened)
            change()
        assert caught.value.committed
        (note,) = caught.value.__notes__
        assert "is committed and stays so" in note and "Do not repeat it" in note

    return call


def version(store, scope):
    return version_of(store, scope)


@pytest.mark.parametrize("verb", CUBE_VERBS)
def test_changes_of_a_cube(verb, opened, store, silent_after, caplog):
    cube = opened.cube("c")
    silent_after(lambda: CUBE_VERBS[verb](cube))
    assert version(store, cube_scope("c")) == 3
    assert "is committed and stays so" in caplog.text


@pytest.mark.parametrize("verb", TABLE_VERBS)
def test_changes_of_a_table(verb, opened, store, silent_after):
    table = opened.table("t")
    silent_after(lambda: TABLE_VERBS[verb](table))
    assert version(store, scope_of("t")) == 2


def test_what_is_new(opened, store, silent_after):
    cube, table = opened.cube("c"), opened.table("t")
    silent_after(lambda: opened.build("b", CELLS, **LAYOUT))
    silent_after(lambda: opened.write_table("t", NEW, "append"))
    silent_after(lambda: cube.copy_to(opened, "copy"))
    silent_after(lambda: table.copy_to(opened, "copied"))
    silent_after(lambda: cube.rename("renamed"))
    found = [version(store, cube_scope(name)) for name in ("b", "copy", "renamed")]
    assert found == [1, 1, 1]
    assert version(store, scope_of("t")) == 2 and version(store, scope_of("copied")) == 1


def test_who_is_refused_is_told_nothing_of_a_commit(opened):
    with pytest.raises(KtkError) as caught:
        opened.cube("c").delete("unknown = 1")
    assert not getattr(caught.value, "__notes__", []) and not caught.value.committed
