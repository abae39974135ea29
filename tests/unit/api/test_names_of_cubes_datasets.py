"""The uuid of a cube's dataset does not name a table: requests for it are refused first."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.errors import DatasetNotFoundError, KtkError, SpecificationError
from tests.support.stores import tree

UUID = "dd++seed"
ROWS = pa.table({"x": [1, 2], "v": [8, 9]})


@pytest.fixture
def face(store):
    face = Store.of(store)
    face.build("dd", ROWS, dimension_columns=["x"])
    face.write_table("t", ROWS)
    return face


@pytest.mark.parametrize("name", [UUID, "dd++new", "new++seed"])
@pytest.mark.parametrize(
    "do",
    [
        lambda face, name: face.write_table(name, ROWS, "overwrite"),
        lambda face, name: face.write_table(name, ROWS, "append"),
        lambda face, name: face.write_table(name, ROWS.to_reader(), "merge", key=["x"]),
        lambda face, name: face.build(name, ROWS, dimension_columns=["x"], overwrite=True),
        lambda face, name: face.table("t").rename(name),
        lambda face, name: face.cube("dd").rename(name),
        lambda face, name: face.table("t").copy_to(face, name, overwrite=True),
        lambda face, name: face.cube("dd").copy_to(face, name, overwrite=True),
        lambda face, name: face.cube("dd").extend({name: ROWS}, overwrite=True),
        lambda face, name: face.table(name),
        lambda face, name: face.relation(name),
        lambda face, name: face.cube(name),
        lambda face, name: face.drop(name),
        lambda face, name: face.cleanup(name, delete=True),
    ],
)
def test_python(face, store, do, name):
    before = tree(store.root)
    with pytest.raises(KtkError):
        do(face, name)
    assert tree(store.root) == before


def test_the_refusal_says_how(face):
    with pytest.raises(KtkError, match=r"dataset seed of cube dd, .* Store.cube\('dd'\)"):
        face.write_table(UUID, ROWS, "overwrite")


@pytest.mark.parametrize(
    "command",
    [
        ("delete", UUID, "x = 1", "--yes"),
        ("drop", UUID, "--yes"),
        ("compact", UUID),
        ("index", UUID, "v"),
        ("publish", UUID),
        ("set-properties", UUID, "a=1"),
        ("copy", UUID, "--to", "."),
        ("copy", "t", "--rename", UUID),
        ("rename", UUID, "u"),
        ("rename", "t", UUID),
        ("tag", UUID, "a"),
        ("restore", UUID, "1"),
        ("undrop", UUID),
        ("adopt", UUID),
        ("cleanup", UUID, "--delete"),
    ],
)
def test_the_command(face, store, ktk, command):
    before = tree(store.root)
    result = ktk(*command, code=None)
    assert result.exit_code, result.output
    assert tree(store.root) == before


@pytest.mark.parametrize("name", ["++a", "a++", "++", "+++"])
def test_a_name_with_nothing_on_one_side_of_the_sign_is_no_dataset(store, name):
    face = Store.of(store)
    with pytest.raises(SpecificationError, match="separates cube and dataset"):
        face.write_table(name, pa.table({"x": [1]}))
    for ask in (lambda: face.table(name).rows, lambda: face.drop(name)):
        with pytest.raises(DatasetNotFoundError, match="has no cube or table"):
            ask()
