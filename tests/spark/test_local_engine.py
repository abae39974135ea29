"""Both engines give the same rows, in the same types and order."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktk_engine.api import Query, Store
from tests.support.changes import WriteRequest, build
from tests.support.foreign_cubes import write_foreign
from tests.support.random_cubes import INDEXED, columns_of, conditions, cubes, examples, write
from tests.support.stores import LocalStore

QUESTIONS = 3


def check_same(spark, query: Query) -> None:
    ours = query.to_arrow(engine="local")
    theirs = query.to_arrow(spark)
    assert ours.schema == theirs.schema
    # As texts: NaN is not equal to itself, -0.0 is not 0.0.
    assert list(map(repr, ours.to_pylist())) == list(map(repr, theirs.to_pylist()))
    assert query.count(engine="local") == query.count(spark)


@pytest.mark.filterwarnings("ignore")
@given(data=st.data(), cube=cubes(enrichments=3, kinds=[*INDEXED, pa.float64()], missing=True))
@examples(2)
def test_files_of_other_writers(spark, tmp_path_factory, data, cube):
    store = LocalStore(tmp_path_factory.mktemp("random") / "an")
    write_foreign(store, cube, data)
    check_questions(spark, store, data, cube)


@pytest.mark.filterwarnings("ignore")
@given(data=st.data(), cube=cubes(enrichments=3))
@examples(1)
def test_files_of_ours(spark, tmp_path_factory, data, cube):
    store = LocalStore(tmp_path_factory.mktemp("random") / "an")
    write(store, cube)
    check_questions(spark, store, data, cube)


def check_questions(spark, store, data, cube) -> None:
    opened = Store(store.root).cube("c")
    for _ in range(QUESTIONS):
        condition = data.draw(conditions(cube))
        columns = data.draw(st.permutations(list(columns_of(cube))))
        check_same(spark, opened.query(columns, condition.text))
    check_same(
        spark, opened.query(cube[0].dimensions[:1], dimension_columns=cube[0].dimensions[:1])
    )


def test_groups_are_the_same(spark, store):
    n = range(40)
    seed = {"P": [i % 3 for i in n], "L": list(n), "k": [None if i % 7 == 3 else i % 4 for i in n]}
    build(store, pa.table(seed), WriteRequest("seed", "seed", "c", ("L",), ("P",)))
    names = pa.table({"P": [0, 1, 2], "L": [0, 1, 2], "name": ["zero", None, "two"]})
    build(store, names, WriteRequest("names", "enrichment", "c", ("L",), ("P",)))
    query = Store(store.root).cube("c").query(["L", "name"], partition_by=["P"])
    ours, theirs = list(query.iter_groups(engine="local")), list(query.iter_groups(spark))
    assert [values for values, _ in ours] == [values for values, _ in theirs]
    for (_, mine), (_, other) in zip(ours, theirs, strict=True):
        assert mine.equals(other)


def test_spark_answers_what_does_not_fit(spark, store):
    rows = pa.table({"L": range(1000), "v": [i * 0.5 for i in range(1000)]})
    build(store, rows, WriteRequest("seed", "seed", "c", ("L",), ()))
    query = Store(store.root).cube("c").query()
    for answer in (query.to_arrow(memory_limit=1_000), query.to_arrow()):
        assert answer.equals(rows)
    assert query.count(memory_limit=1_000) == 1000
    assert sum(batch.num_rows for batch in query.to_batches(memory_limit=1_000)) == 1000


def test_stored_types_and_columns_without_a_file(spark, tmp_path):
    """Spark's rows get the types of the files, and a column that no file has is null."""
    cells = {"P": [1, 1, 2], "L": [1, 2, 3]}
    types = {
        "f": pa.float32(),
        "i": pa.int8(),
        "w": pa.uint16(),
        "v": pa.list_(pa.float32(), 2),
        "t": pa.dictionary(pa.int32(), pa.string()),
        "b": pa.binary(),
        "d": pa.decimal128(5, 1),
    }
    values = {
        "f": [0.5, None, 1.5],
        "i": [1, 2, None],
        "w": [65_535, 0, None],
        "v": [[0.5, 1.0], None, [2.0, 3.0]],
        "t": ["a", None, "b"],
        "b": [b"x", None, b""],
        "d": [1, None, 2],
    }
    payload = {name: pa.array(values[name], t) for name, t in types.items()}
    cube = Store(tmp_path).build(
        "c",
        {"s": pa.table(cells), "e": pa.table({**cells, **payload})},
        seed="s",
        dimension_columns=["L"],
        partition_by=["P"],
    )
    cube = cube.publish(kartothek=False).alter("e", add={"x": "float"})
    for where in ("true", "f > 0", "x is null and i < 2"):
        check_same(spark, cube.query(where=where))
        query = cube.query(where=where, types="stored")
        check_same(spark, query)
        found = query.to_arrow(spark)
        assert (found["f"].type, found["i"].type, found["v"].type) == (
            pa.float32(),
            pa.int8(),
            pa.list_(pa.float32(), 2),
        )
        batches = list(query.to_batches(spark))
        assert all(batch.schema == found.schema for batch in batches)
        assert set(found["x"].to_pylist()) <= {None}
