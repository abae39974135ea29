"""What a verb looked at and left alone is a part of what its commit depends on.

Another process commits between what a verb reads and what it commits, or says.
"""

from __future__ import annotations

from contextlib import nullcontext

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import CommitConflictError
from tests.support.changes import (
    ScopeTransaction,
    StagedStore,
    comment_on,
    plan_removal,
    publish_stages,
    run_removal,
)
from tests.support.committed import cube_scope, version_of
from tests.support.documents import Comments
from tests.support.tiny_bounds import tiny_bounds

CELLS = pa.table({"p": ["a", "b"], "x": [1, 2], "v": [1, 2]})
AGAIN = {"s": pa.table({"p": ["a"], "x": [1], "v": [9]})}
LAYOUT = {"dimension_columns": ["x"], "partition_by": ["p"], "indexes": ["w"]}
BOUNDS = pytest.mark.parametrize("bounds", [nullcontext, tiny_bounds])


def extra(p, x, w=77):
    """A row of the enrichment."""
    return {"e": pa.table({"p": [p], "x": [x], "w": [w]})}


@pytest.fixture
def face(store):
    """Cells (a, 1) and (b, 2) of the cube `c`, of which `e` has only the second; a table `t`."""
    face = Store.of(store)
    face.build("c", {"s": CELLS, **extra("b", 2, 5)}, seed="s", **LAYOUT)
    face.write_table("t", CELLS, partition_by=["p"], indexes=["x"])
    return face


@pytest.fixture
def meanwhile(monkeypatch):
    """Let others do something when a transaction is about to end; gives a list of the attempts."""

    def let(change, times=1, verb=("change c", "delete from t")):
        attempts = []
        for name in ("commit", "checked"):
            end = getattr(ScopeTransaction, name)

            def ending(self, *args, end=end):
                if self.operation in verb and busy not in attempts:
                    attempts.append(self.base.version)
                    if len(attempts) <= times:
                        attempts.append(busy)
                        change()
                        attempts.remove(busy)
                return end(self, *args)

            monkeypatch.setattr(ScopeTransaction, name, ending)
        return attempts

    busy = object()
    return let


VERBS = {
    "delete": lambda cube: cube.delete("p = 'a'"),
    "delete of named datasets": lambda cube: cube.delete("p = 'a'", ["s", "e"]),
    "delete of one": lambda cube: cube.delete("p = 'a'", ["e"]),
    "delete by a cell": lambda cube: cube.delete("x = 1"),
    "delete by an index": lambda cube: cube.delete("w = 77", ["e"]),
    "delete of all that there is": lambda cube: cube.delete("p in ('a', 'c')"),
    "remove_partitions": lambda cube: cube.remove_partitions("p = 'a'"),
    "remove_partitions of one": lambda cube: cube.remove_partitions("p = 'a'", ["e"]),
}


@BOUNDS
@pytest.mark.parametrize("verb", VERBS)
def test_a_row_that_comes_to_a_dataset_left_alone_goes_too(face, meanwhile, verb, bounds):
    with bounds():
        attempts = meanwhile(lambda: face.cube("c").append(extra("a", 1)))
        VERBS[verb](face.cube("c"))
        assert len(attempts) == 2
        cube = face.cube("c").append(AGAIN)
        assert cube.query(["w"], "v = 9").to_arrow().to_pylist() == [{"w": None}]


@BOUNDS
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("finds", ["a row of the seed", "nothing"])
def test_a_verb_beside_refreshes_of_others_is_computed_once(face, meanwhile, verb, finds, bounds):
    """Twenty commits that bring no row to look at: by partition, bounds and index."""
    with bounds():
        if finds == "nothing":
            face.cube("c").delete("p = 'a'")
        before = version_of(face._store, cube_scope("c"))

        def refresh():
            cube = face.cube("c")
            for number in range(10):
                cube.update(extra("b", 2, number), "p = 'b'")
                cube.append({"s": pa.table({"p": ["b"], "x": [3 + number], "v": [0]})})

        attempts = meanwhile(refresh)
        VERBS[verb](face.cube("c"))
        assert attempts == [before]
        assert face.cube("c").query(["w"], "x = 2").to_arrow().to_pylist() == [{"w": 9}]


@pytest.mark.parametrize("verb", ["delete", "remove_partitions"])
def test_a_dataset_that_comes_goes_too(face, meanwhile, verb):
    """A verb on all datasets with some columns depends on which these are."""
    new = {"f": pa.table({"p": ["a"], "x": [1], "u": [66]})}
    attempts = meanwhile(lambda: face.cube("c").extend(new))
    VERBS[verb](face.cube("c"))
    assert len(attempts) == 2
    cube = face.cube("c").append(AGAIN)
    assert cube.query(["u"], "v = 9").to_arrow().to_pylist() == [{"u": None}]


@pytest.mark.parametrize(
    "change",
    [
        lambda face: comment_on(face._store, "c++e", Comments("a")),
        lambda face: face.cube("c").index("v"),
        lambda face: face.cube("c").extend({"f": pa.table({"x": [1], "u": [66]})}),
    ],
)
def test_what_brings_no_row_is_no_conflict(face, meanwhile, change):
    attempts = meanwhile(lambda: change(face))
    face.cube("c").delete("p = 'c'")
    assert len(attempts) == 1


def test_a_seed_dataset_goes_with_what_came_to_depend_on_it(face):
    """A cube is dropped as a whole: an enrichment that comes meanwhile is a conflict."""
    with pytest.raises(CommitConflictError, match=r"c\+\+f"), face.cube("c").transaction() as own:
        own.drop("s", "e")
        face.cube("c").extend({"f": pa.table({"p": ["a"], "x": [1], "u": [66]})})
    assert face.cube("c").datasets == ["s", "e", "f"]


def test_a_cube_that_is_built_anew_beside_a_dataset_that_comes(face, meanwhile):
    new = {"f": pa.table({"p": ["a"], "x": [1], "u": [66]})}
    meanwhile(lambda: face.cube("c").extend(new))
    with pytest.raises(CommitConflictError, match=r"c\+\+f"):
        face.build("c", {"s": CELLS, **extra("b", 2)}, seed="s", overwrite=True, **LAYOUT)
    assert face.cube("c").datasets == ["s", "e", "f"]


def test_a_cube_that_is_dropped_beside_a_dataset_that_comes(face):
    planned = plan_removal(face._store, "c", cascade=True)
    face.cube("c").extend({"f": pa.table({"p": ["a"], "x": [1], "u": [66]})})
    with pytest.raises(CommitConflictError, match=r"c\+\+f"):
        run_removal(planned)
    assert face.cube("c").datasets == ["s", "e", "f"]
    face.drop("c")
    assert face.cubes() == []


@pytest.mark.parametrize("x", [1, 7])
def test_what_a_transaction_looked_at_after_its_own_rows(face, x):
    """Own rows are not a conflict, also in a dataset that it appends to; others' are."""
    with (
        pytest.raises(CommitConflictError, match=r"c\+\+e") if x == 7 else nullcontext(),
        face.cube("c").transaction() as own,
    ):
        own.append(extra("b", 3))
        own.extend({"f": pa.table({"p": ["b"], "x": [7], "u": [66]})})
        own.delete("x = 7", ["e"])
        face.cube("c").append(extra("a", x))
    assert face.cube("c").datasets == (["s", "e"] if x == 7 else ["s", "e", "f"])


@BOUNDS
def test_a_table(face, meanwhile, bounds):
    with bounds():
        attempts = meanwhile(lambda: face.write_table("t", CELLS.slice(0, 1), "append"))
        face.table("t").delete("x = 1 and p = 'b'")
        assert len(attempts) == 1
        attempts.clear()
        face.table("t").delete("x = 1")
        assert (len(attempts), face.table("t").query().count()) == (2, 1)
        attempts.clear()
        face.table("t").delete("x = 1")
        assert (len(attempts), face.table("t").query().count()) == (2, 1)


@pytest.mark.parametrize("first", [True, False])
def test_a_staged_run_depends_on_what_it_left_alone(face, first):
    """Whether it has committed to the cube before or after that."""
    stage = StagedStore(face._store)
    cube = Store.of(stage).cube("c")
    if not first:
        cube.append(extra("b", 4))
    Store.of(stage).cube("c").delete("p = 'a'", ["e"])
    if first:
        Store.of(stage).cube("c").append(extra("b", 4))
    face.cube("c").append(extra("b", 3))
    face.cube("c").append(extra("a", 1))
    with pytest.raises(CommitConflictError, match=r"c\+\+e"):
        publish_stages([stage])
    assert face.cube("c").query(["w"], "x = 1").to_arrow().to_pylist() == [{"w": 77}]


@pytest.mark.parametrize("other", [None, "u", "own and taken back"])
@pytest.mark.parametrize("name", ["c", "t"])
def test_a_staged_run_depends_on_what_it_only_looked_at(face, name, other):
    """No commit of the run is in that cube or table; without any commit there is nothing to do."""
    stage = StagedStore(face._store)
    run = Store.of(stage)
    if name == "c":
        run.cube("c").delete("p = 'c'", ["e"])
    else:
        run.table("t").delete("p = 'c'")
    if other == "u":
        run.write_table("u", CELLS)
    elif other:
        run.cube("c").extend({"f": pa.table({"p": ["b"], "x": [2], "u": [66]})})
        run.cube("c").drop("f")
    face.cube("c").append({"s": pa.table({"p": ["c"], "x": [1], "v": [9]}), **extra("c", 1)})
    face.write_table("t", pa.table({"p": ["c"], "x": [3], "v": [3]}))
    with pytest.raises(CommitConflictError, match=r"c\+\+e" if name == "c" else "Dataset t"):
        publish_stages([stage])
    assert face.tables() == ["t"]
    assert not list(face._store.list_names(".ktk/dataset/u"))


def test_what_a_staged_run_looked_at_is_no_base_of_its_commits(face):
    """Nor does it publish a version of its own."""
    stage = StagedStore(face._store)
    Store.of(stage).table("t").delete("p = 'c'")
    Store.of(stage).cube("c").delete("p = 'c'", ["e"])
    face.write_table("t", CELLS.slice(1), "overwrite")
    Store.of(stage).write_table("t", CELLS)
    face.write_table("t", CELLS.slice(0, 1))
    [done] = publish_stages([stage])
    assert (done.entry.scope, face.table("t").query().count()) == ("dataset/t", 4)
