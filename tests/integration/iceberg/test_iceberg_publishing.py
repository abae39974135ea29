"""Iceberg metadata follow every commit: kills, other writers, removals, clean-ups, costs."""

import json
import shutil
import sys
import threading
from datetime import timedelta

import pyarrow as pa
import pytest
from click.testing import CliRunner

from ktk_engine import Store
from ktk_engine.cli.main import main
from ktk_engine.errors import KtkError, PublishError, PublishWarning
from ktk_engine.publish.iceberg import table_files
from ktk_engine.publish.publish_datasets import (
    check_publishing,
    follow_setting,
    publish_datasets,
    stop_publishing,
)
from tests.integration.iceberg.readers import (
    READERS,
    by_pyiceberg,
    files,
    newest_file,
    table_of,
)
from tests.integration.iceberg.stored_metadata import (
    file_of,
    folder,
    lists,
    manifests,
    newest,
    numbers,
    time_travels,
)
from tests.support.changes import (
    Retention,
    StagedStore,
    comment_on,
    publish_stages,
    remove,
    run_cleanup,
    undrop,
)
from tests.support.committed import check, resolve, scope_of
from tests.support.documents import Comments
from tests.support.published_table import (
    ROWS,
    VERBS,
    append,
    killed,
    problem,
    published,
    url_of,
)
from tests.support.stores import fail

ICEBERG = ("iceberg",)


def left(store):
    """What is left of the metadata."""
    return sorted(file.name for file in folder(store).glob("*"))


def current_manifests(store):
    table = table_of(url_of(store))
    return {item.manifest_path for item in table.current_snapshot().manifests(table.io)}


def test_one_version_for_each_commit_and_none_twice(store):
    face = published(store, "iceberg")
    append(face, 3)
    publish_datasets(store, "t")
    found = newest(store).metadata
    assert (newest(store).version, numbers(store), problem(store)) == (2, [1, 2, 3], "")
    assert [item["summary"]["ktk.version"] for item in found["snapshots"]] == ["2", "3"]
    assert [item["sequence-number"] for item in found["snapshots"]] == [1, 2]
    times = [item["timestamp-ms"] for item in found["snapshots"]]
    assert times == sorted(set(times)) and found["last-updated-ms"] == times[-1]
    assert found["snapshots"][1]["summary"]["operation"] == "append"
    for name, read in READERS.items():
        assert sorted(read(url_of(store))["x"].to_pylist()) == [1, 2, 3], name


def test_data_is_not_copied_and_a_commit_writes_one_small_manifest(store):
    face = published(store, "iceberg")
    first = current_manifests(store)
    append(face, 3)
    second = current_manifests(store)
    assert first < second and len(second) == 2
    face.table("t").delete("x = 3")
    assert first <= current_manifests(store)
    assert not (store.root / "t" / "data").exists()
    assert numbers(store) == [1, 2]


def test_manifests_are_merged_in_tiers(store, monkeypatch):
    monkeypatch.setattr(table_files, "_LARGEST", 16)
    face = published(store, "iceberg")
    for value in range(3, 33):
        append(face, value)
        assert len(current_manifests(store)) <= 18
    assert numbers(store) == list(range(1, 33))
    face.table("t").delete("x in (3, 17, 30)")
    assert problem(store) == ""
    face.table("t").compact()
    assert (len(files(url_of(store))), problem(store)) == (1, "")
    counts = {item["summary"]["total-data-files"] for item in newest(store).snapshots[-1:]}
    assert counts == {"1"}


def test_the_manifests_of_many_files_stay_when_one_is_added(store):
    face = Store.of(store)
    many = pa.table({"p": [f"{n:04}" for n in range(1_100)], "x": range(1_100)})
    face.write_table("t", many, partition_by=["p"])
    publish_datasets(store, "t", formats=ICEBERG)
    before = current_manifests(store)
    store.calls.clear()
    face.write_table("t", pa.table({"p": ["0001"], "x": [-1]}))
    read = [key for method, key in store.calls if method == "get" and "metadata" in key]
    assert not any(key in path for path in before for key in read if "list" not in key)
    assert before < current_manifests(store)
    assert (len(numbers(store)), problem(store)) == (1_101, "")
    face.table("t").delete("p = '0500'")
    assert (len(numbers(store)), problem(store)) == (1_100, "")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", ["metadata.json", ".avro", "version-hint"])
def test_what_was_not_published_is_a_warning_that_the_next_commit_mends(store, when, what, caplog):
    face = published(store, "iceberg")
    method = {"metadata.json": "put_if_absent", ".avro": "put", "version-hint": "replace"}[what]
    store.faults.append(fail(when, method, what))
    append(face, 3)
    assert "not published as Iceberg" in caplog.text
    assert numbers(store) in ([1, 2], [1, 2, 3])
    append(face, 4)
    assert (numbers(store), problem(store)) == ([1, 2, 3, 4], "")


@pytest.mark.parametrize("verb", VERBS)
def test_a_kill_at_any_call_leaves_a_whole_version(verb):
    """Iceberg is never ahead of us, and the next commit brings it up to date."""
    for store, versions in killed(verb, "iceberg"):
        found = newest(store)
        assert not found.broken
        assert found.published in versions
        assert found.published <= resolve(store, scope_of("t")).version


def test_a_staged_run_publishes_when_it_ends(store):
    published(store, "iceberg")
    staged = StagedStore(store)
    append(Store.of(staged), 3)
    with pytest.raises(PublishError, match="staged run cannot stop"):
        stop_publishing(staged, "t")
    assert numbers(store) == [1, 2]
    publish_stages([staged])
    assert (numbers(store), problem(store)) == ([1, 2, 3], "")


def test_concurrent_writers_publish_in_order(store):
    face = published(store, "iceberg")
    failures = []

    def work(number):
        try:
            for step in range(4):
                append(face, 10 * number + step)
        except KtkError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    publish_datasets(store, "t")
    assert not failures
    assert (len(numbers(store)), problem(store)) == (14, "")
    versions = [int(s["summary"]["ktk.version"]) for s in newest(store).snapshots]
    assert versions == sorted(set(versions))


@pytest.mark.parametrize("damage", ["gone", "torn", "hint", "list", "manifest"])
def test_damaged_metadata_are_written_anew(store, damage):
    face = published(store, "iceberg")
    append(face, 3)
    if damage == "gone":
        shutil.rmtree(folder(store))
    elif damage == "torn":
        file_of(store, 2).write_text('{"format-version": 2, "loc')
    elif damage == "hint":
        (folder(store) / "version-hint.text").unlink()
    elif damage == "list":
        for file in lists(store):
            file.write_bytes(b"Obj\x01torn")
    else:
        for file in manifests(store):
            file.unlink()
    assert problem(store) != ""
    append(face, 4)
    assert ("missing" in problem(store)) == (damage == "manifest")  # an append reads none
    publish_datasets(store, "t")
    assert problem(store) == ""
    for name, read in READERS.items():
        assert sorted(read(url_of(store))["x"].to_pylist()) == [1, 2, 3, 4], name


def written_by_another(store):
    """What an engine with a catalog of Hadoop's kind leaves: a version and a hint of its own."""
    found = newest(store).metadata
    version, current = newest(store).version, found["snapshots"][-1]
    foreign = {**current, "snapshot-id": 7, "sequence-number": current["sequence-number"] + 1}
    foreign |= {"summary": {"operation": "append"}, "parent-snapshot-id": current["snapshot-id"]}
    found["snapshots"].append(foreign)
    found |= {"current-snapshot-id": 7, "last-sequence-number": foreign["sequence-number"]}
    found["refs"]["main"]["snapshot-id"] = 7
    found["properties"]["owner"] = "another"
    file_of(store, version + 1).write_text(json.dumps(found))
    (folder(store) / "version-hint.text").write_text(str(version + 1))


def test_what_another_engine_committed_is_noticed_and_taken_back(store):
    face = published(store, "iceberg")
    append(face, 3)
    written_by_another(store)
    assert "has nothing that this library published" in problem(store)
    assert "t/iceberg/metadata" in check(store, "t").problems[0].file
    with pytest.warns(PublishWarning, match="t: Another program wrote version 3 of the Iceberg"):
        append(face, 4)
    assert (numbers(store), problem(store)) == ([1, 2, 3, 4], "")
    found = newest(store).metadata
    assert "owner" not in found["properties"]
    assert found["last-sequence-number"] == 4 and newest(store).version == 4


def test_metadata_that_a_catalog_names_are_noticed_and_stay(store):
    published(store, "iceberg")
    other = folder(store) / "00001-a.metadata.json"
    other.write_text("{}")
    assert "another program has written 00001-a.metadata.json" in problem(store)
    stop_publishing(store, "t")
    assert left(store) == [other.name]


def test_comments_and_columns_follow(store):
    face = published(store, "iceberg")
    comment_on(store, "t", Comments("what é is", {"x": "a number"}))
    table = table_of(url_of(store))
    assert table.properties["comment"] == "what é is"
    assert table.schema().fields[0].doc == "a number"
    face.write_table("t", pa.table({"y": [0.5], "x": ["text"]}), "overwrite")
    assert by_pyiceberg(url_of(store)).column_names == ["y", "x"]
    face.table("t").restore(version=1)
    assert (numbers(store), problem(store)) == ([1, 2], "")
    face.table("t").repartition("x")
    assert (numbers(store), problem(store)) == ([1, 2], "")


def test_a_removed_table_has_no_metadata_and_a_revived_one_has(store):
    published(store, "iceberg")
    remove(store, "t")
    assert left(store) == []
    undrop(store, "t")
    assert (numbers(store), problem(store)) == ([1, 2], "")


def test_metadata_that_a_removal_left_go_with_a_clean_up(store):
    published(store, "iceberg")
    store.faults.append(fail("before", "delete", "metadata.json"))
    remove(store, "t")
    assert left(store)
    run_cleanup(store, scope_of("t"), Retention(timedelta(0), 0))
    assert left(store) == []


def test_a_clean_up_forgets_the_snapshots_whose_files_go(store):
    face = published(store, "iceberg")
    for value in range(3, 8):
        face.write_table("t", pa.table({"x": [value], "s": ["z"]}), "overwrite")
    assert len(newest(store).snapshots) == 6
    done = run_cleanup(store, scope_of("t"), Retention(timedelta(0), 2))
    assert done.garbage.objects
    kept = newest(store).snapshots
    assert [item["summary"]["ktk.version"] for item in kept] == ["6", "7"]
    table = table_of(url_of(store))
    for item, value in zip(kept, (6, 7), strict=True):
        rows = table.scan(snapshot_id=item["snapshot-id"]).to_arrow()
        assert rows["x"].to_pylist() == [value]
    assert (numbers(store), problem(store)) == ([7], "")
    assert run_cleanup(store, scope_of("t"), Retention(timedelta(0), 2)).warning == ""


def test_a_clean_up_deletes_nothing_while_the_metadata_name_an_older_version(store):
    face = published(store, "iceberg")
    face.write_table("t", pa.table({"x": pa.array([2**63], pa.uint64())}), "overwrite")
    assert numbers(store) == [1, 2]
    done = run_cleanup(store, scope_of("t"), Retention(timedelta(0), 1))
    assert "its Iceberg metadata still has an older version" in done.warning
    assert numbers(store) == [1, 2]


def test_ten_snapshots_are_kept_and_what_nothing_names_goes(store, monkeypatch):
    face = published(store, "iceberg")
    for value in range(3, 18):
        append(face, value)
    monkeypatch.setattr(
        "ktk_engine.publish.iceberg.iceberg_version._UNNAMED_LIFETIME", timedelta(0)
    )
    for value in range(18, 23):
        append(face, value)
    assert len(newest(store).snapshots) == 10
    named = {item["manifest-list"].rpartition("/")[2] for item in newest(store).snapshots}
    here = {file.name for file in lists(store)}
    assert named <= here and len(here) < 14
    assert time_travels(store) == [*range(13, 23)]


def test_a_stop_deletes_the_metadata_and_leaves_the_other_form(store):
    face = published(store, "iceberg")
    publish_datasets(store, "t", formats=("delta",))
    assert face.table("t")._state.snapshot("t").published_as == {"delta", "iceberg"}
    assert stop_publishing(store, "t", formats=ICEBERG) == ["t"]
    assert left(store) == []
    append(face, 3)
    assert [item.format for item in check_publishing(store, "t")] == ["delta"]
    follow_setting(store, "t", ICEBERG)
    assert [item.format for item in check_publishing(store, "t")] == ["iceberg"]
    assert store.list_names("t/_delta_log") == []
    assert stop_publishing(store, "t") == ["t"]
    assert stop_publishing(store, "t") == []


def test_a_store_that_was_moved_is_published_anew(store, tmp_path):
    face = published(store, "iceberg")
    append(face, 3)
    moved = tmp_path / "moved"
    shutil.copytree(store.root, moved)
    other = Store(moved)
    assert "names files in" in check_publishing(other._store, "t")[0].problem
    publish_datasets(other._store, "t")
    assert all(str(moved) in path for path in files(str(moved / "t")))
    assert check_publishing(other._store, "t")[0].problem == ""


def test_folders_with_odd_names_are_read(tmp_path):
    store = Store(tmp_path / "a b%41ü")
    store.write_table("t", pa.table({"p": ["a/b"], "x": [1]}), partition_by=["p"])
    store.table("t").publish("iceberg")
    url = str(tmp_path / "a b%41ü" / "t")
    for name in ("pyiceberg", "iceberg-polars"):
        assert READERS[name](url)["x"].to_pylist() == [1], name


def test_without_the_package_the_command_says_how_to_get_it(store, monkeypatch, caplog):
    face = published(store, "iceberg")
    monkeypatch.setitem(sys.modules, "fastavro", None)
    monkeypatch.setattr("ktk_engine.extras.find_spec", lambda name: None)  # deep: not installed
    with pytest.raises(PublishError, match="fastavro"):
        publish_datasets(store, "t")
    append(face, 3)
    assert "fastavro" in caplog.text
    monkeypatch.undo()
    append(face, 4)
    assert (numbers(store), problem(store)) == ([1, 2, 3, 4], "")


def test_cells_in_several_files_wait_for_a_compaction(tmp_path):
    store = Store(tmp_path / "s")
    rows = pa.table({"p": ["a", "b"], "d": [1, 1], "v": [1.0, 2.0]})
    store.build("c", rows, dimension_columns=["d"], partition_by=["p"])
    store.cube("c").publish("iceberg")
    url = str(tmp_path / "s" / "c++seed")
    store.cube("c").append({"seed": pa.table({"p": ["a"], "d": [1], "v": [4.0]})})
    [found] = check_publishing(store._store, "c")
    assert "store.cube('c').compact(dataset='seed')" in found.problem
    assert sorted(by_pyiceberg(url)["v"].to_pylist()) == [1.0, 2.0]
    store.cube("c").compact()
    assert sorted(by_pyiceberg(url)["v"].to_pylist()) == [2.0, 4.0]


def test_the_command_publishes_compares_and_stops(store):
    face = Store.of(store)
    face.write_table("t", ROWS)

    def run(*arguments):
        return CliRunner().invoke(main, ["--store", str(store.root), "publish", "t", *arguments])

    assert "ktk publish t --iceberg" in run("--check", "--iceberg").output
    assert "iceberg" in run("--iceberg").output
    assert run("--check").exit_code == 0
    said = CliRunner().invoke(main, ["--store", str(store.root), "info", "t"]).output
    assert "t: published as iceberg" in said
    store.faults.append(fail("before", "put_if_absent", "metadata.json"))
    append(face, 3)
    done = run("--check", "--json")
    assert (done.exit_code, json.loads(done.output)[0]["format_version"]) == (1, 1)
    assert json.loads(run("--json").output)[0]["format"] == "iceberg"
    assert numbers(store) == [1, 2, 3]
    assert "t is no longer published as Iceberg" in run("--iceberg", "--stop").output
    assert run("--iceberg", "--kartothek").exit_code == 2


def test_metadata_is_what_the_hint_names(store):
    published(store, "iceberg")
    assert newest_file(url_of(store)).endswith("/t/iceberg/metadata/v1.metadata.json")


def test_a_catalog_that_deletes_the_tables_folder_loses_no_row(store):
    """As `drop table` in Iceberg's catalog for Hadoop, which knows no other files."""
    face = published(store, "iceberg")
    append(face, 3)
    location = newest(store).metadata["location"].removeprefix("file://")
    shutil.rmtree(location)
    assert problem(store) == "it has no Iceberg metadata"
    assert sorted(face.table("t").query().to_arrow(engine="local")["x"].to_pylist()) == [1, 2, 3]
    publish_datasets(store, "t")
    assert (numbers(store), problem(store)) == ([1, 2, 3], "")
