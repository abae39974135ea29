"""Arrow tables through the gate and the writer: what is stored is what was given, or nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ktk_engine.errors import DataError, TypeClassError
from ktk_engine.files import file_writer  # deep: patched
from ktk_engine.types.declared import adopt_unsigned  # deep: what the write declares
from ktk_engine.write.build import build
from tests.support.changes import WriteRequest
from tests.support.committed import check, snapshot_of
from tests.support.queries import mismatch
from tests.support.random_cubes import TIMES
from tests.support.stores import LocalStore, tree
from tests.unit.types.strategies import families
from tests.unit.types.values import STORABLE, array, comparable, sound, tables, values

TABLE = WriteRequest("t")
SLOW = settings(
    deadline=None,
    max_examples=15 * TIMES,
    suppress_health_check=list(HealthCheck),
)


def stored(store: LocalStore, target: WriteRequest) -> list[pa.Table]:
    snapshot = snapshot_of(store, target.uuid)
    return [pq.ParquetFile(store.root / key).read() for key in snapshot.files["key"].to_pylist()]


@SLOW
@given(tables())
def test_every_value_of_every_type_survives(table):
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder) / "s")
        build(store, table, TABLE)
        files = stored(store, TABLE)
        assert sum(file.num_rows for file in files) == table.num_rows
        for file in files:
            for field in table.schema:
                found = comparable(file[field.name], field.type)
                assert found == comparable(table[field.name], field.type)
        assert check(store, "t").problems == ()


@st.composite
def pairs(draw):
    """Two tables of one column whose types are mostly of one class."""
    left, right = draw(families(2).filter(lambda types: all(map(sound, types))))
    return [
        pa.table({"L": [1, 2], "v": array(t, draw(st.lists(values(t), min_size=2, max_size=2)))})
        for t in (left, right)
    ]


@SLOW
@given(pairs())
def test_what_is_refused_writes_nothing(two):
    target = WriteRequest("seed", "seed", "c", ("L",))
    first, second = two
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder) / "s")
        try:
            build(store, first, target)
        except TypeClassError:
            assert tree(store.root) == {}
            return
        before = tree(store.root)
        adopted = adopt_unsigned(first.schema, second.schema)  # decision 12
        differs = mismatch(first.schema.field("v").type, adopted.field("v").type)
        try:
            build(store, second, target)
        except TypeClassError as error:
            assert tree(store.root) == before
            assert "v" in str(error)
        else:
            assert differs is None


@SLOW
@given(STORABLE.flatmap(lambda t: st.tuples(st.just(t), values(t))), st.data())
def test_a_declared_type_holds_the_value_or_refuses_it(typed, data):
    t, value = typed
    declared = data.draw(st.sampled_from([pa.int8(), pa.uint8(), pa.float32(), pa.float16()]))
    table = pa.table({"id": [1], "v": array(t, [value])})
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder) / "s")
        target = WriteRequest("t", declared={"v": declared})
        try:
            build(store, table, target)
        except (TypeClassError, DataError) as error:
            assert "v" in str(error)
            assert tree(store.root) == {}
            return
        (file,) = stored(store, target)
        assert file.schema.field("v").type == declared
        exact = table["v"].combine_chunks()
        assert (
            value is None
            or float(file["v"][0].as_py()) == float(exact[0].as_py())
            or (value != value)
        )


def test_a_dictionary_under_a_null_struct_is_written(tmp_path):
    t = pa.list_(pa.struct({"a": pa.null(), "zip": pa.dictionary(pa.int8(), pa.bool_())}))
    store = LocalStore(tmp_path / "s")
    build(store, pa.table({"L": [1, 2], "v": pa.array([[None], None], t)}), TABLE)
    (file,) = stored(store, TABLE)
    assert file["v"].to_pylist() == [[None], None]
    assert check(store, "t").problems == ()


def test_what_arrow_cannot_write_is_said(tmp_path, monkeypatch):
    """Old versions write no null lists of fixed size, for instance."""
    store = LocalStore(tmp_path / "s")
    build(store, pa.table({"a": [1]}), TABLE)
    before = tree(store.root)

    def refuse(self, table):
        raise pa.ArrowNotImplementedError("lists with non-zero length null components")

    monkeypatch.setattr(file_writer._OpenFile, "write", refuse)
    with pytest.raises(DataError, match=r"Dataset t: Arrow [\d.]+ cannot write a column: lists"):
        build(store, pa.table({"a": [1]}), TABLE)
    assert tree(store.root) == before
