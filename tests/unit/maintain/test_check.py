"""`check`: files of other writers and damaged files are found by their footers."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from ktk_engine.cli.main import main
from ktk_engine.errors import DatasetNotFoundError
from ktk_engine.maintain.check import check, check_all
from ktk_engine.maintain.remove import remove
from ktk_engine.maintain.versions.tag import tag_version
from tests.support.changes import Retention, run_cleanup
from tests.support.committed import scope_of
from tests.support.dataset_builder import build_nyc, build_table, write_plain_nyc
from tests.support.documents import document_key
from tests.support.stores import fail, keys


def test_a_sound_cube(store):
    build_nyc(store)
    found = check(store, "nyc")
    assert found.problems == ()
    assert (found.datasets, found.files, found.indices) == (3, 5, 2)


def test_what_kartothek_wrote_is_checked_too(store):
    write_plain_nyc(store)
    assert check(store, "nyc").problems == ()


def test_a_table_and_nothing(store):
    build_table(store)
    assert check(store, "plain").files == 1
    with pytest.raises(DatasetNotFoundError):
        check(store, "plian")


def rewrite(store, prefix, change):
    """Replace a data file's rows by another program."""
    key = min(key for key in keys(store, prefix) if key.endswith(".parquet") and "/table/" in key)
    path = store.root / key
    pq.write_table(change(pq.ParquetFile(path).read()), path)
    return key


def with_column(name, values):
    def change(table):
        index = table.column_names.index(name)
        return table.set_column(index, name, pa.array(values * table.num_rows))

    return change


def reasons(store):
    return [(item.dataset, item.column, item.reason) for item in check(store, "nyc").problems]


def test_another_class_is_found(store):
    build_nyc(store)
    key = rewrite(store, "nyc++weather", with_column("gust", ["strong"]))
    problems = [item for item in check(store, "nyc").problems if item.column]
    assert [(item.file, item.column) for item in problems] == [(key, "gust")]
    assert problems[0].expected == "float (double)"
    assert problems[0].found == "string (string)"
    assert problems[0].reason == "float and string are different type classes"


def test_no_values_and_other_widths_are_fine(store):
    build_nyc(store)
    rewrite(
        store,
        "nyc++weather",
        lambda t: with_column("gust", pa.nulls(1, pa.string()).to_pylist())(t),
    )
    assert [reason for _, column, reason in reasons(store) if column] == []


def test_a_dimension_must_be_there(store):
    build_nyc(store)
    rewrite(store, "nyc++weather", lambda table: table.drop_columns(["hour"]))
    assert ("weather", "hour", "a dimension or index column must not be null") in reasons(store)


def test_a_further_column_is_found(store):
    build_nyc(store)
    rewrite(store, "nyc++weather", lambda t: t.append_column("x", pa.array([1] * t.num_rows)))
    assert ("weather", "x", "the committed schema lacks the column") in reasons(store)


def test_missing_damaged_and_other_files(store):
    build_nyc(store)
    files = sorted(
        k for k in keys(store, "nyc++flights") if k.endswith(".parquet") and "/table/" in k
    )
    (store.root / files[0]).unlink()
    (store.root / files[1]).write_bytes(b"no parquet")
    index = min(
        k for k in keys(store, "nyc++flights") if "/indices/" in k or "by-dataset-index" in k
    )
    (store.root / index).unlink()
    found = [reason for _, _, reason in reasons(store)]
    assert found[0] == "the file is missing"
    assert found[1].startswith("the file is damaged")
    assert found[2] == "the file is missing"


def test_other_rows_and_size(store):
    build_nyc(store)
    rewrite(store, "nyc++weather", lambda table: pa.concat_tables([table] * 50))
    found = [reason for _, _, reason in reasons(store)]
    assert "the number of rows differs from the committed one" in found


def test_the_command(store):
    build_nyc(store)
    run = CliRunner().invoke
    sound = run(main, ["--store", str(store.root), "check", "nyc"])
    assert sound.exit_code == 0
    assert "3 datasets, 5 data files and 2 index files checked; no problems" in sound.stdout
    rewrite(store, "nyc++weather", with_column("gust", ["strong"]))
    broken = run(main, ["--store", str(store.root), "check", "nyc"])
    assert broken.exit_code == 1
    assert "float and string" in " ".join(broken.stdout.split())
    data = json.loads(run(main, ["--store", str(store.root), "check", "nyc", "--json"]).stdout)
    assert any(item["column"] == "gust" for item in data["problems"])


def test_files_of_tagged_versions_are_checked(store):
    build_table(store, table=pa.table({"a": [1]}))
    tag_version(store, "plain", "first")
    (old,) = [key for key in keys(store, "plain/") if "/table/" in key and "_common" not in key]
    build_table(store, table=pa.table({"a": [2]}))
    tag_version(store, "plain", "second")
    tag_version(store, "plain", "again", "first")
    found = check(store, "plain")
    assert (found.problems, found.files, found.tagged) == ((), 2, 2)
    run = CliRunner().invoke(main, ["--store", str(store.root), "check", "plain"])
    assert "2 data files" in run.stdout and "2 tagged versions included" in run.stdout
    rewrite(store, old, with_column("a", ["text"]))
    (problem, *_) = check(store, "plain").problems
    assert problem.file == old and "version 1, tagged again: " in problem.reason
    (store.root / old).unlink()
    (problem,) = check(store, "plain").problems
    assert "version 1, tagged again: the file is missing" in problem.reason
    assert check(store, "plain", only=["plain"]).problems == ()


def test_what_a_tagged_version_had_of_other_datasets_is_checked(store):
    build_nyc(store)
    tag_version(store, "nyc", "all")
    remove(store, "nyc", "weather")
    rewrite(store, "nyc++weather", with_column("gust", ["strong"]))
    problems = check(store, "nyc").problems
    assert {(item.dataset, item.column) for item in problems if item.column} == {
        ("weather", "gust")
    }


def test_published_documents_are_compared_with_the_log(store):
    """One that is behind, and one that names other files than were committed."""
    build_table(store)
    old = store.get(document_key("plain"))
    store.faults.append(fail("before", "replace", "by-dataset-metadata"))
    assert "not published" in build_table(store).warning
    (found,) = check(store, "plain").problems
    assert (found.expected, found.found) == ("version 2", "version 1")
    assert "store.cleanup('plain', delete=True)" in found.reason
    run_cleanup(store, scope_of("plain"), Retention())
    assert check(store, "plain").problems == ()

    # The stamp's digest is that of the rest.
    store.put(document_key("plain"), old.replace(b'"version": 1', b'"version": 2', 1))
    (found,) = check(store, "plain").problems
    assert (found.expected, found.found) == ("version 2", "other files")


def test_a_document_that_was_never_published(store):
    store.faults.append(fail("before", "put_if_absent", "by-dataset-metadata"))
    build_table(store)
    (found,) = check(store, "plain").problems
    assert (found.expected, found.found) == ("version 1", "nothing")


@pytest.mark.parametrize("documents", [True, False])
def test_a_log_that_is_gone_is_found(store, documents):
    build_nyc(store)
    build_table(store)
    for key in keys(store):
        if key.startswith(".ktk/cube/nyc/log/") or (
            not documents and key.startswith("nyc++") and ".by-dataset" in key
        ):
            (store.root / key).unlink()
    (store.root / ".ktk/cube/nyc/log").rmdir()
    nyc, table = check_all(store)
    assert len(nyc.problems) == 1 and not table.problems
    assert "log" in str(nyc.problems[0].reason)


@pytest.mark.parametrize("killed", [False, True])
def test_a_log_that_is_gone_is_found_beside_the_note_of_a_writer(store, killed):
    """A first write that was killed has only its own snapshots."""
    if not killed:
        build_table(store)
        for key in keys(store):
            if "/log/" in key or ".by-dataset" in key:
                (store.root / key).unlink()
    store.put(".ktk/dataset/plain/snapshots/x/plain.parquet", b"")
    store.put(".ktk/dataset/plain/intent/x.json", b"{}")
    assert [item.name for item in check_all(store)] == ([] if killed else ["plain"])


def test_a_cube_that_was_removed_or_is_being_made_is_no_problem(store):
    build_nyc(store)
    remove(store, "nyc", cascade=True)
    store.put(".ktk/cube/new/snapshots/x/new++seed.parquet", b"")
    store.put(".ktk/cube/new/intent/x.json", b"{}")
    assert list(check_all(store)) == []
