"""A stored table of files gives what the decoded one does, and decodes no more than it must."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktk_engine.errors import FormatError
from ktk_engine.snapshot import stored_files
from ktk_engine.snapshot import stored_snapshot as stored_module
from ktk_engine.snapshot.snapshot import FILE_FIELDS, Snapshot, files_table
from ktk_engine.snapshot.stored_files import StoredFiles
from ktk_engine.snapshot.stored_snapshot import read_snapshot, write_snapshot
from tests.support.stores import LocalStore

_SCHEMA = pa.schema([("p", pa.int64()), ("a", pa.int64()), ("a.b", pa.int64())])


def _files(count):
    labels = [f"p={number}/x" for number in range(count)]
    partitions = pa.table({"p": pa.array(range(count), pa.int64())})
    bounds = pa.table(
        {"min.a": pa.array(range(count), pa.int64()), "min.a.b": pa.array([7] * count, pa.int64())}
    )
    return files_table(labels, labels, partitions, {"rows": [3] * count}, bounds)


def _stored(files, row_group):
    sink = pa.BufferOutputStream()
    pq.write_table(files, sink, row_group_size=row_group)
    stored = StoredFiles(sink.getvalue().to_pybytes())
    stored.complete(FILE_FIELDS, ("min.",))
    return stored


@settings(deadline=None)
@given(st.lists(st.booleans(), max_size=9), st.integers(1, 4), st.booleans(), st.data())
def test_gives_what_the_decoded_table_gives(kept, row_group, old, data):
    files = _files(len(kept))
    written = files.drop_columns(["tail", "digest", "tail_digest"]) if old else files
    stored = _stored(written, row_group)
    assert (stored.num_rows, stored.column_names) == (len(kept), files.column_names)
    names = data.draw(st.lists(st.sampled_from(files.column_names), unique=True))
    assert stored.select(names).equals(files.select(names))
    mask = pa.array(kept, pa.bool_())
    assert stored.some(mask, stored.column_names).equals(files.filter(mask))
    assert not names or stored.some(mask, names).equals(files.select(names).filter(mask))
    assert stored.select(stored.column_names).equals(files)
    assert stored.some(mask, stored.column_names).equals(files.filter(mask))
    assert not names or stored.some(mask, names).equals(files.select(names).filter(mask))
    assert stored.select(names).num_rows == len(kept)


def test_a_column_of_another_type_is_refused():
    files = _files(2)
    place = files.schema.get_field_index("rows")
    with pytest.raises(ValueError, match="column rows has type string"):
        _stored(files.set_column(place, "rows", pa.array(["3", "3"])), 2)


def test_threads_share_it():
    files = _files(100)
    stored = _stored(files, 10)
    with ThreadPoolExecutor(8) as pool:
        names = files.column_names * 4
        found = list(pool.map(lambda name: stored.select([name]), names))
    assert all(item.equals(files.select([name])) for name, item in zip(names, found, strict=True))


@pytest.fixture
def read(tmp_path, monkeypatch):
    """A snapshot of ten files in groups of two, and its digest."""
    monkeypatch.setattr(stored_module, "_ROW_GROUP", 2)
    store = LocalStore(tmp_path)
    snapshot = Snapshot("d", _SCHEMA, ("p",), _files(10))
    _, sha256, _ = write_snapshot(store, lambda _: "s.parquet", snapshot)
    return lambda digest=sha256: read_snapshot(store, "s.parquet", digest)


def test_a_verified_snapshot_is_decoded_when_it_is_needed(read, monkeypatch):
    decoded = []
    monkeypatch.setattr(
        StoredFiles, "_read", lambda *_: decoded.append(_) or pytest.fail("decoded")
    )
    found = read()
    assert found.file_table.num_rows == 10
    with pytest.raises(pytest.fail.Exception):
        _ = found.files
    with pytest.raises(pytest.fail.Exception):
        read("")  # what nobody can verify is decoded at once


def test_a_snapshot_is_the_same_decoded_or_not(read):
    found = read()
    assert isinstance(found.file_table, StoredFiles)
    assert found.rows == 30
    assert found.files.equals(_files(10))
    assert replace(found, file_table=_files(10)) == replace(read(), file_table=_files(10))
    few = found.of_files(pa.array([n == 3 for n in range(10)]))
    assert few.labels == ["p=3/x"]
    assert few.file_column("position").to_pylist() == [3]


def test_threads_of_arrow_read_memory_that_needs_no_interpreter(monkeypatch):
    """A thread that lets go of Python's memory while the process ends aborts it."""
    monkeypatch.setattr(stored_files, "_VALUES_OF_A_THREAD", 0)
    given, reader = [], pa.BufferReader
    stored = _stored(_files(5), 2)
    monkeypatch.setattr(pa, "BufferReader", lambda data: given.append(data) or reader(data))
    assert stored.select(["label"])["label"].to_pylist() == [f"p={n}/x" for n in range(5)]
    assert [type(data) for data in given] == [pa.Buffer]


@pytest.mark.parametrize("name", ["key", "label"])
@pytest.mark.parametrize("some", [False, True])
def test_a_column_that_repeats_one_long_text_is_refused(name, some):
    count, text = 4_000, pa.array(["x" * 1_000_000], pa.string())
    indices = pa.array([0] * count, pa.int32())
    files = _files(count)
    table = files.set_column(
        files.schema.get_field_index(name), name, pa.DictionaryArray.from_arrays(indices, text)
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", row_group_size=count // 2, store_schema=False)
    stored = StoredFiles(sink.getvalue().to_pybytes())
    stored.complete(FILE_FIELDS, ("min.",))
    pool = pa.default_memory_pool()
    before = pool.max_memory()
    with pytest.raises(FormatError, match="one of its columns has more than"):
        if some:
            stored.some(pa.array([False, *[True] * (count - 1)]), [name])
        else:
            stored.select([name])
    assert pool.max_memory() - before < 200_000_000
