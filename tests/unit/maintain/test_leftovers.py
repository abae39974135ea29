"""What other programs left in a store is deleted once it is old, and surely needed by none."""

from __future__ import annotations

import json
from datetime import timedelta

import pyarrow as pa
import pytest
from click.testing import CliRunner

from ktk_engine import Store
from ktk_engine.cli.main import main
from ktk_engine.errors import DatasetNotFoundError, ForeignWriterError
from ktk_engine.maintain.adoption.adopt import plan_adoption, run_adoption
from ktk_engine.maintain.check import check
from ktk_engine.maintain.cleanup import plan_cleanup, run_cleanup, scope_to_clean
from ktk_engine.maintain.versions.tag import tag_version
from tests.support.changes import Retention
from tests.support.committed import cube_scope, resolve, scope_of
from tests.support.dataset_builder import append_as_kartothek, flights, write_plain, write_plain_nyc
from tests.support.documents import document_key
from tests.support.stores import grow_old, keys, tree

CUBE, PLAIN = cube_scope("nyc"), scope_of("plain")
NOTHING = Retention(timedelta(0), 1)
DAY = 86_400


def garbage(store, scope=CUBE, retention=NOTHING):
    return {info.key for info in plan_cleanup(store, scope, retention).objects}


def written_twice(store):
    """The cube nyc as Kartothek has it after two builds; gives what is needed of it no more."""
    write_plain_nyc(store)
    before = keys(store)
    write_plain_nyc(store)
    return {key for key in before if key.endswith(".parquet")}


def test_a_store_without_a_log_is_cleaned(store):
    left = written_twice(store)
    assert left and garbage(store) == set()  # they may be of a writer at work
    grow_old(store)
    before = tree(store.root)
    assert garbage(store) == left and tree(store.root) == before
    done = run_cleanup(store, CUBE, NOTHING)
    assert (done.version, done.warning) == (1, "") and not left & keys(store)
    assert check(store, "nyc").problems == ()
    assert run_cleanup(store, CUBE, NOTHING).version == 0


def test_an_adopted_store_is_cleaned(store):
    left = written_twice(store)
    run_adoption(plan_adoption(store, "nyc"))
    grow_old(store, 6)
    assert garbage(store) == set()
    grow_old(store, 8)
    assert garbage(store) == left
    assert garbage(store, retention=Retention(timedelta(days=10), 1)) == set()
    run_cleanup(store, CUBE, NOTHING)
    assert not left & keys(store) and check(store, "nyc").problems == ()


def test_what_a_kept_or_tagged_version_needs_stays(store):
    write_plain(store, "plain", pa.table({"a": [1]}))
    run_adoption(plan_adoption(store, "plain"))
    tag_version(store, "plain", "first")
    append_as_kartothek(store, "plain")
    Store(store.root).write_table("plain", pa.table({"a": [5]}), "overwrite")
    grow_old(store)
    run_cleanup(store, PLAIN, NOTHING)
    first = Store(store.root).table("plain", version="first")
    assert first.query().to_arrow(engine="local")["a"].to_pylist() == [1]


def test_what_a_document_of_another_cube_names_stays(store):
    left = written_twice(store)
    grow_old(store)
    spared = min(left)
    document = {"dataset_metadata_version": 4, "dataset_uuid": "copy", "partitions": {
        "x": {"files": {"table": spared}}}}  # fmt: skip
    store.put(document_key("copy"), json.dumps(document).encode())
    assert garbage(store) == left - {spared}


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b"\xff"])
def test_a_damaged_document_of_another_cube_may_name_any_file(store, damaged):
    left = written_twice(store)
    grow_old(store)
    store.put(document_key("copy"), damaged)
    assert garbage(store) == set()
    store.delete([document_key("copy")])
    assert garbage(store) == left


def test_only_what_is_surely_of_the_format_goes(store):
    write_plain_nyc(store)
    kept = {"nyc++flights/README", "nyc++flights/a.parquet", "nyc.foo/table/x.parquet"}
    kept |= {"nyc++other/part=1/x.parquet", "nyc++other/_delta_log/0.json"}
    kept |= {"nyc_2++a/table/x.parquet", "nyc/table/x.parquet", "nyc++flights.foo"}
    gone = {"nyc++gone/table/origin=a/x.parquet", "nyc++gone/table/_common_metadata"}
    gone |= {"nyc++flights/indices/hour/x.by-dataset-index.parquet"}
    for key in kept | gone:
        store.put(key, b"x")
    grow_old(store)
    assert garbage(store) == gone
    run_cleanup(store, CUBE, NOTHING)
    assert kept <= keys(store) and not gone & keys(store)


def test_nothing_goes_where_a_document_cannot_be_read(store):
    write_plain_nyc(store)
    store.put(document_key("nyc++more"), b"{")
    grow_old(store)
    with pytest.raises(ForeignWriterError, match="Nothing was deleted"):
        garbage(store)


def test_a_cube_of_which_only_files_are_left(store):
    store.put("gone++seed/table/x.parquet", b"x")
    store.put("++odd/table/x.parquet", b"x")
    grow_old(store)
    assert scope_to_clean(store, "gone") == cube_scope("gone")
    for name in ("gon", "gone++seed", "no name"):
        with pytest.raises(DatasetNotFoundError):
            scope_to_clean(store, name)
    said = CliRunner().invoke(main, ["--store", str(store.root), "cleanup", "--delete"])
    assert said.exit_code == 0 and "gone" in said.output
    assert not keys(store, "gone++") and store.exists("++odd/table/x.parquet")
    assert not resolve(store, cube_scope("gone")).datasets


def test_what_is_not_ours_and_cannot_be_read_is_no_failure(store):
    left = written_twice(store)
    store.put(document_key("strange"), b"{")
    grow_old(store)

    def run(*words):
        return CliRunner().invoke(main, ["--store", str(store.root), "cleanup", *words])

    said = run("--delete")
    assert said.exit_code == 0 and "Warning: strange: " in said.stderr
    assert garbage(store) == set() and left <= keys(store)  # the strange one may name them
    assert run("strange").exit_code == 1
    store.delete([document_key("strange")])
    assert run("--delete").exit_code == 0 and not left & keys(store)


def test_documents_are_read_once_for_all_scopes(store, monkeypatch):
    for name in ("a", "b", "c"):
        write_plain(store, name, pa.table({"x": [1]}))
        write_plain(store, name, pa.table({"x": [2]}))
    grow_old(store)
    read, named = [], {}
    load = store.get
    monkeypatch.setattr(store, "get", lambda key: read.append(key) or load(key))
    scopes = [scope_of(name) for name in ("a", "b", "c")]
    for scope in scopes:
        assert len(plan_cleanup(store, scope, NOTHING, named).objects) == 1
    assert set(named) == {"a", "b", "c"}
    read.clear()
    plan_cleanup(store, scopes[0], NOTHING, named)
    assert not [key for key in read if key.startswith(("b", "c"))]


def test_from_python(store):
    left = written_twice(store)
    grow_old(store)
    ours = Store(store.root)
    assert {info.key for info in ours.cleanup("nyc").objects} == left <= keys(store)
    assert ours.cleanup("nyc", delete=True).bytes > 0 and not left & keys(store)
    assert ours.cleanup("nyc").is_empty
    assert ours.cube("nyc").query().to_arrow(engine="local").num_rows == flights().num_rows
