"""`check` finds damage in every kind of file; `check --deep` every flipped bit of a data file."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from ktk_engine.cli.main import main
from ktk_engine.maintain.check import check
from tests.support.changes import WriteRequest, build
from tests.support.committed import cube_scope, resolve, snapshot_of
from tests.support.dataset_builder import write_plain_nyc
from tests.support.documents import (
    build_index,
    common_metadata_key,
    document_key,
    render_index,
    stored_index,
)

CELLS = WriteRequest("cells", "seed", "c", ("k",), partition_by=("P",), indexes=("text",))
MORE = WriteRequest("more", "enrichment", "c", ("k",), partition_by=("P",))
SCOPE = cube_scope("c")


def rows(start=0, **columns):
    numbers = range(start, start + 200)
    known = {"k": pa.array(numbers, pa.int64()), "P": [n % 2 for n in numbers]}
    return pa.table(known | {name: [make(n) for n in numbers] for name, make in columns.items()})


@pytest.fixture
def cube(store):
    """A cube with three versions."""
    build(store, rows(text=lambda n: f"value {n % 7}"), CELLS)
    build(store, rows(200, text=lambda n: f"v {n % 7}"), CELLS, mode="append")
    build(store, rows(list=lambda n: [n] * (n % 3)), MORE)
    assert check(store, "c", deep=True).problems == ()
    return resolve(store, SCOPE)


def found(store, deep=False):
    return [(item.file, item.reason) for item in check(store, "c", deep=deep).problems]


def flip(store, key, byte, bit=2):
    data = bytearray((store.root / key).read_bytes())
    data[byte] ^= 1 << bit
    (store.root / key).write_bytes(data)


def some(store, key, count):
    """Positions spread over a file."""
    size = (store.root / key).stat().st_size
    return range(0, size, max(size // count, 1))


@pytest.mark.parametrize("dataset", ["c++cells", "c++more"])
def test_every_flip_in_a_data_file_is_found_by_a_deep_check(store, cube, dataset):
    key = cube.snapshot(dataset).files["key"][0].as_py()
    for byte in some(store, key, 60):
        flip(store, key, byte, byte % 8)
        assert [file for file, _ in found(store, deep=True)] == [key]
        flip(store, key, byte, byte % 8)


def test_every_flip_in_an_index_is_found(store, cube):
    key = cube.snapshot("c++cells").indices["text"]
    for byte in some(store, key, 60):
        flip(store, key, byte, byte % 8)
        assert key in [file for file, _ in found(store)]
        flip(store, key, byte, byte % 8)


def test_a_damaged_footer_is_found_without_reading_pages(store, cube):
    files = cube.snapshot("c++cells").files.slice(0, 1).to_pylist()[0]
    flip(store, files["key"], files["bytes"] - files["tail"] + 3)
    ((file, reason),) = found(store)
    assert file == files["key"]
    assert "its footer is not the one that was written" in reason


def test_an_old_entry_that_is_missing_or_damaged_is_found(store, cube):
    (store.root / SCOPE.entry_key(1)).unlink()
    flip(store, SCOPE.entry_key(2), 300)
    assert [file for file, _ in found(store)] == [SCOPE.entry_key(1), SCOPE.entry_key(2)]


def test_damaged_snapshots_are_found(store, cube):
    key = cube.datasets["c++more"].entry.snapshot
    (store.root / key).write_bytes(b"PAR1")
    assert [file for file, _ in found(store)] == [key]
    run = CliRunner().invoke(main, ["--store", str(store.root), "check", "c"])
    assert run.exit_code == 1
    assert "is damaged" in " ".join(run.stdout.split())


def test_a_damaged_snapshot_of_history_is_found_by_a_deep_check(store, cube):
    first = cube_entry(store, 1)["datasets"]["c++cells"]["snapshot"]
    flip(store, first, 400)
    assert found(store) == []
    assert [file for file, _ in found(store, deep=True)] == [first]


def cube_entry(store, version):
    return json.loads((store.root / SCOPE.entry_key(version)).read_text())


def test_published_files_are_compared(store, cube):
    document, schema = document_key("c++cells"), common_metadata_key("c++more")
    flip(store, document, 600)
    (store.root / schema).write_bytes(b"no parquet")
    assert [file for file, _ in found(store)] == [document, schema]
    (store.root / schema).unlink()
    assert (schema, "the file is missing") in found(store)


def test_files_of_another_writer_are_read_by_a_deep_check(store):
    write_plain_nyc(store)
    snapshot = snapshot_of(store, "nyc++flights")
    key = snapshot.files["key"][0].as_py()
    assert check(store, "nyc", deep=True).problems == ()
    page = pq.read_metadata(store.root / key).row_group(0).column(2).data_page_offset
    flip(store, key, page + 1, 6)
    assert [item.file for item in check(store, "nyc", deep=True).problems] == [key]


@pytest.mark.parametrize("harm", ["a lost file", "a lost value", "a wrong value"])
def test_an_index_of_another_writer_is_compared_with_the_rows(store, harm):
    write_plain_nyc(store)
    snapshot = snapshot_of(store, "nyc++flights")
    key = snapshot.indices["hour"]
    pairs = stored_index(store, key)
    assert pairs.num_rows == 4
    values, labels = pairs["value"].to_pylist(), pairs["label"].to_pylist()
    if harm == "a wrong value":
        values[0] = 77
    else:
        values, labels = values[1:], labels[1:]
    if harm == "a lost file":
        values, labels = values[:-1], [snapshot.labels[0]] * 2
    index = build_index(pa.array(values, pa.int64()), pa.array(labels))
    (store.root / key).write_bytes(render_index("hour", index))
    problems = check(store, "nyc", deep=True).problems
    assert [(item.file, item.column) for item in problems] == [(key, "hour")]
    assert "does not list the values" in problems[0].reason


def test_the_command_reads_all_when_asked(store, cube):
    key = cube.snapshot("c++cells").files["key"][0].as_py()
    flip(store, key, 100)
    run = CliRunner().invoke
    shallow = run(main, ["--store", str(store.root), "check", "c"])
    assert shallow.exit_code == 0
    deep = run(main, ["--store", str(store.root), "check", "c", "--deep", "--json"])
    assert deep.exit_code == 1
    assert [item["file"] for item in json.loads(deep.stdout)["problems"]] == [key]
    assert "every page" in run(main, ["--store", str(store.root), "check", "c", "--deep"]).stdout


def test_a_file_that_cannot_be_read_is_not_called_damaged(store, cube):
    """It may be whole, as behind a link, which is never followed, or without rights to it."""
    path = store.root / next(i.key for i in store.list("c++cells/table/") if ".parquet" in i.key)
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))
    (problem,) = check(store, "c", deep=True).problems
    assert "the file cannot be read" in problem.reason
    assert "damaged" not in problem.reason
