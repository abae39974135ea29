"""A Delta log follows every commit: kills, other writers, removals, clean-ups."""

import json
import threading
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from ktk_engine import Store
from ktk_engine.cli.main import main
from ktk_engine.errors import (
    ConfigurationError,
    KtkError,
    PublishError,
    PublishWarning,
    StoreError,
)
from ktk_engine.publish.delta.delta_log import entry_key, read_log
from ktk_engine.publish.publish_datasets import (
    check_formats,
    check_publishing,
    publish_datasets,
    stop_publishing,
)
from tests.integration.delta.readers import READERS
from tests.support.changes import (
    Retention,
    StagedStore,
    comment_on,
    publish_stages,
    remove,
    run_cleanup,
    undrop,
)
from tests.support.committed import check, resolve, scope_of, version_of
from tests.support.documents import (
    Comments,
    DatasetDocument,
    common_metadata_key,
    data_key,
    document_key,
    load_document,
    render_common_metadata,
    render_document,
)
from tests.support.kartothek import kartothek, needs_kartothek
from tests.support.published_table import (
    ROWS,
    VERBS,
    append,
    killed,
    problem,
    published,
    url_of,
)
from tests.support.queries import dataset_schema
from tests.support.stores import fail

NOW = Retention(timedelta(0), 1)


def numbers(store):
    return sorted(READERS["arrow"](url_of(store))["x"].to_pylist())


def test_one_entry_for_each_commit_and_none_twice(store):
    face = published(store, "delta")
    append(face, 3)
    publish_datasets(store, "t")
    table = deltalake.DeltaTable(url_of(store))
    assert (table.version(), numbers(store), problem(store)) == (1, [1, 2, 3], "")
    assert [item["ktk"]["version"] for item in table.history()] == [3, 2]


def test_data_is_not_copied_and_files_that_stay_are_not_named_again(store):
    face = published(store, "delta")
    files = {key for key in store.root.rglob("*.parquet") if "_delta_log" not in str(key)}
    append(face, 3)
    lines = (store.root / entry_key("t", 1)).read_text().splitlines()
    assert [next(iter(json.loads(line))) for line in lines] == ["commitInfo", "txn", "add"]
    now = {key for key in store.root.rglob("*.parquet") if "_delta_log" not in str(key)}
    assert len(now - files) == 2  # a data file of ours and a snapshot


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_was_not_published_is_a_warning_that_the_next_commit_mends(store, when, caplog):
    face = published(store, "delta")
    store.faults.append(fail(when, "put_if_absent", "_delta_log"))
    append(face, 3)
    assert "not published as Delta" in caplog.text
    assert numbers(store) == ([1, 2] if when == "before" else [1, 2, 3])
    said = problem(store)
    assert ("version 2, and version 3 is committed" in said) == (when == "before")
    append(face, 4)
    assert (numbers(store), problem(store)) == ([1, 2, 3, 4], "")


def test_ktk_publish_mends_it_too(store):
    face = published(store, "delta")
    store.faults.append(fail("before", "put_if_absent", "_delta_log"))
    append(face, 3)
    [found] = publish_datasets(store, "t")
    assert (found.version, found.format_version, numbers(store)) == (3, 1, [1, 2, 3])


@pytest.mark.parametrize("verb", VERBS)
def test_a_kill_at_any_call_leaves_a_whole_version(verb):
    """Delta is never ahead of us, and the next commit brings it up to date."""
    for store, versions in killed(verb, "delta"):
        delta = read_log(store, "t")
        assert not delta.broken or verb == "remove"
        assert delta.published in versions
        assert delta.published <= resolve(store, scope_of("t")).version
        if not delta.broken:
            assert all(store.exists(f"t/{path}") for path, _ in delta.files)


def test_a_staged_run_publishes_when_it_ends(store):
    published(store, "delta")
    staged = StagedStore(store)
    other = Store.of(staged)
    append(other, 3)
    other.write_table("new", ROWS)
    publish_datasets(staged, "new")
    with pytest.raises(PublishError, match="staged run cannot stop"):
        stop_publishing(staged, "t")
    assert numbers(store) == [1, 2]
    assert store.list_names("new/_delta_log") == []
    publish_stages([staged])
    assert (numbers(store), problem(store)) == ([1, 2, 3], "")
    assert [item.problem for item in check_publishing(store, "new")] == [""]
    assert READERS["polars"](str(store.root / "new")).num_rows == 2


def test_concurrent_writers_publish_in_order(store):
    face = published(store, "delta")
    failures = []

    def work(number):
        try:
            for step in range(5):
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
    assert (len(numbers(store)), problem(store)) == (17, "")
    versions = [item["ktk"]["version"] for item in deltalake.DeltaTable(url_of(store)).history()]
    assert versions == sorted(versions, reverse=True)


def test_a_checkpoint_says_the_same_as_all_entries(store):
    face = published(store, "delta")
    for number in range(3, 25):
        append(face, number)
    log = store.root / "t" / "_delta_log"
    assert (log / f"{19:020d}.checkpoint.parquet").exists()
    for number in range(19):
        (log / f"{number:020d}.json").unlink()
    for read in READERS.values():
        assert sorted(read(url_of(store))["x"].to_pylist()) == [1, 2, *range(3, 25)]
    assert problem(store) == ""
    append(face, 25)
    assert (len(numbers(store)), problem(store)) == (25, "")


@pytest.mark.parametrize(
    "line",
    [
        "3",
        '{"metaData": 3}',
        '{"metaData": {"id": 7}}',
        '{"metaData": {"id": "a", "schemaString": {}, "partitionColumns": [], "format": {}}}',
        '{"protocol": "x"}',
        '{"protocol": {"minReaderVersion": "1"}}',
        '{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": 3}}',
        '{"add": {"path": 3}}',
        '{"txn": {"appId": "dbt-ktk", "version": "z"}}',
        "[" * 100_000,
    ],
    ids=lambda line: line[:20],
)
def test_an_entry_that_says_nonsense_does_not_stop_publishing(store, line, caplog):
    face = published(store, "delta")
    (store.root / "t" / "_delta_log" / f"{1:020d}.json").write_text(line)
    assert "damaged" in problem(store)
    append(face, 3)
    assert "Delta" not in caplog.text
    assert (numbers(store), problem(store)) == ([1, 2, 3], "")


@pytest.mark.parametrize("damage", ["gone", "torn", "first"])
def test_a_damaged_log_is_written_anew(store, damage):
    face = published(store, "delta")
    append(face, 3)
    log = store.root / "t" / "_delta_log"
    if damage == "gone":
        for file in log.iterdir():
            file.unlink()
    elif damage == "torn":
        (log / f"{1:020d}.json").write_text('{"add": {"pa')
    else:
        (log / f"{0:020d}.json").unlink()
    assert problem(store) != ""
    publish_datasets(store, "t")
    assert problem(store) == ""
    for read in READERS.values():
        assert sorted(read(url_of(store))["x"].to_pylist()) == [1, 2, 3]


WRITES = {
    "append": lambda url: deltalake.write_deltalake(url, ROWS, mode="append"),
    "overwrite": lambda url: deltalake.write_deltalake(url, ROWS, mode="overwrite"),
    "delete": lambda url: deltalake.DeltaTable(url).delete("x = 1"),
    "update": lambda url: deltalake.DeltaTable(url).update({"s": "'new'"}, predicate="x = 1"),
    "optimize": lambda url: deltalake.DeltaTable(url).optimize.compact(),
    "properties": lambda url: deltalake.DeltaTable(url).alter.set_table_properties(
        {"delta.appendOnly": "true"}
    ),
    "forced vacuum": lambda url: deltalake.DeltaTable(url).vacuum(
        0, dry_run=False, enforce_retention_duration=False, full=True
    ),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("local", [False, True], ids=["plain", "with a table feature"])
def test_no_other_engine_can_write(store, write, local):
    rows = ROWS.append_column("local", pa.array([0, 1], pa.timestamp("us"))) if local else ROWS
    face = published(store, "delta", rows=rows)
    face.write_table("t", rows.slice(0, 1).set_column(0, "x", pa.array([3])))
    kept = {file for file in store.root.rglob("*") if file.is_file()}
    with pytest.raises(Exception, match="dbtKtk"):
        WRITES[write](url_of(store))
    assert {file for file in store.root.rglob("*") if file.is_file()} == kept
    assert (numbers(store), problem(store)) == ([1, 2, 3], "")


def of_an_earlier_version(store):
    """Make the log's first entry one that other engines may write after."""
    file = store.root / entry_key("t", 0)
    lines = []
    for line in map(json.loads, file.read_text().splitlines()):
        if "protocol" in line:
            line["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 2}
        if "metaData" in line:
            del line["metaData"]["configuration"]["delta.dataSkippingStatsColumns"]
        if "add" in line:
            line["add"]["stats"] = '{"numRecords": 2, "nullCount": {"x": 0, "s": 0}}'
        lines.append(json.dumps(line))
    file.write_text("\n".join(lines))


@pytest.mark.parametrize("checkpoint", [False, True])
def test_what_another_engine_wrote_to_an_earlier_log_is_said_and_taken_back(store, checkpoint):
    face = published(store, "delta")
    of_an_earlier_version(store)
    deltalake.write_deltalake(url_of(store), pa.table({"x": [7], "s": ["q"]}), mode="append")
    deltalake.DeltaTable(url_of(store)).delete("x = 1")
    if checkpoint:
        deltalake.DeltaTable(url_of(store)).create_checkpoint()
    assert numbers(store) == [2, 7]
    assert "another program changed its Delta log" in problem(store)
    with pytest.warns(
        PublishWarning, match="t: Another program wrote version 2 .*2 files that it added"
    ):
        append(face, 3)
    assert (numbers(store), problem(store)) == ([1, 2, 3], "")
    with pytest.raises(Exception, match="dbtKtk"):
        deltalake.DeltaTable(url_of(store)).delete("x = 1")
    dataset = deltalake.DeltaTable(url_of(store)).to_pyarrow_dataset()
    assert dataset.to_table(filter=pc.field("x") == 1).num_rows == 1
    assert check(store, "t", deep=True).problems == ()


def test_vacuum_deletes_nothing_of_ours(store):
    face = published(store, "delta")
    face.write_table("t", ROWS.slice(1), "overwrite", indexes=["s"])
    table = deltalake.DeltaTable(url_of(store))
    assert table.vacuum(dry_run=False) == []
    with pytest.raises(Exception, match=r"(?i)retention"):
        table.vacuum(retention_hours=0, dry_run=False)
    assert face.table("t", version=1).query().to_arrow(engine="local").num_rows == 2


def test_comments_and_columns_follow(store):
    face = published(store, "delta")
    comment_on(store, "t", Comments("what é is", {"x": "a number"}))
    table = deltalake.DeltaTable(url_of(store))
    assert table.metadata().description == "what é is"
    assert table.schema().fields[0].metadata == {"comment": "a number"}
    face.write_table("t", pa.table({"y": [0.5], "x": ["text"]}), "overwrite")
    found = deltalake.DeltaTable(url_of(store)).schema().fields
    assert [(field.name, field.type.type) for field in found] == [("y", "double"), ("x", "string")]
    face.table("t").restore(version=1)
    assert numbers(store) == [1, 2]


def test_a_removed_table_has_no_delta_log_and_a_revived_one_has(store):
    published(store, "delta")
    remove(store, "t")
    assert not deltalake.DeltaTable.is_deltatable(url_of(store))
    assert store.list_names("t/_delta_log") == []
    undrop(store, "t")
    assert (numbers(store), problem(store)) == ([1, 2], "")


def test_a_log_that_a_removal_left_goes_with_the_next_commit_or_clean_up(store):
    face = published(store, "delta")
    store.faults.append(fail("before", "delete", "_delta_log"))
    remove(store, "t")
    assert deltalake.DeltaTable.is_deltatable(url_of(store))
    run_cleanup(store, scope_of("t"), Retention(timedelta(0), 0))
    assert not deltalake.DeltaTable.is_deltatable(url_of(store))
    face.write_table("t", ROWS)
    with pytest.raises(PublishError, match="is not published as Delta"):
        check_publishing(store, "t")


def test_a_clean_up_keeps_the_log_and_what_it_names(store):
    face = published(store, "delta")
    for number in range(3, 25):
        face.write_table("t", pa.table({"x": [number], "s": ["z"]}), "overwrite")
    done = run_cleanup(store, scope_of("t"), NOW)
    assert done.garbage.objects
    assert not any("_delta_log" in info.key for info in done.garbage.objects)
    assert (numbers(store), problem(store)) == ([24], "")


def test_a_clean_up_deletes_nothing_while_the_log_names_an_older_version(store):
    face = published(store, "delta")
    face.write_table("t", pa.table({"x": pa.array([2**31], pa.uint32())}), "overwrite")
    assert numbers(store) == [1, 2]
    done = run_cleanup(store, scope_of("t"), NOW)
    assert "its Delta log still has an older version" in done.warning
    assert numbers(store) == [1, 2]
    assert face.table("t").version == version_of(store, scope_of("t")) == done.garbage.state.version
    face.table("t", version=1).tag("kept")  # nothing of it was given up
    face.table("t").untag("kept")
    (found,) = face.table("t").check(deep=True)["problems"]
    assert found["reason"].count("To publish it") == 0
    assert "its Delta log still has an older version: column x: it holds" in found["reason"]
    face.write_table("t", ROWS.slice(1), "overwrite")
    assert run_cleanup(store, scope_of("t"), NOW).warning == ""
    assert numbers(store) == [2]


def test_a_stop_deletes_the_log_and_is_remembered(store):
    face = published(store, "delta")
    assert stop_publishing(store, "t") == ["t"]
    append(face, 3)
    assert not (store.root / "t" / "_delta_log").exists()
    assert stop_publishing(store, "t") == []


def test_a_dataset_that_is_not_published_costs_no_request(store):
    face = Store(str(store.root))
    face._store = store
    face.write_table("t", ROWS)
    append(face, 3)
    assert not any("_delta_log" in key for _, key in store.calls)


def test_files_that_may_share_cells_wait_for_a_compaction(tmp_path):
    store = Store(tmp_path / "s")
    rows = pa.table({"p": ["a", "b"], "d": [1, 1], "v": [1.0, 2.0]})
    store.build("c", rows, dimension_columns=["d"], partition_by=["p"])
    publish_datasets(store._store, "c")
    url = str(tmp_path / "s" / "c++seed")
    store.cube("c").append({"seed": pa.table({"p": ["a"], "d": [2], "v": [3.0]})})
    assert READERS["arrow"](url).num_rows == 3  # the dimension's values lie apart
    store.cube("c").append({"seed": pa.table({"p": ["a"], "d": [1], "v": [4.0]})})
    [found] = check_publishing(store._store, "c")
    assert "store.cube('c').compact(dataset='seed')" in found.problem
    assert sorted(READERS["arrow"](url)["v"].to_pylist()) == [1.0, 2.0, 3.0]
    store.cube("c").delete("p = 'a'")
    assert READERS["arrow"](url)["v"].to_pylist() == [2.0]


def test_formats_that_nobody_knows_are_refused():
    assert check_formats("delta") == ("delta",)
    assert check_formats("iceberg, delta") == check_formats(["iceberg", "delta"])
    with pytest.raises(ConfigurationError, match="'hudi' is not a format"):
        check_formats(["hudi"])


def test_a_store_that_cannot_be_read_is_an_error_of_the_command(store):
    published(store, "delta")
    store.get = lambda key: (_ for _ in ()).throw(StoreError("down"))
    with pytest.raises(StoreError, match="down"):
        publish_datasets(store, "t")


def written_by_another(store, table, path="", earlier=None):
    """A document, schema and file as Kartothek writes them: without a log."""
    schema = dataset_schema(table.schema, ("p",))
    label = f"{path or 'p=' + table['p'][0].as_py()}/part-{uuid4().hex[:4]}"
    with store.open_write(data_key("t", label)) as sink:
        pq.write_table(table.drop_columns(["p"]), sink)
    if earlier is None:
        store.put(common_metadata_key("t"), render_common_metadata(schema, ("p",)))
        document = DatasetDocument("t", ("p",), {}, {}, {"creation_time": "2020"})
    else:
        document = replace(earlier, stamp=None)
    partitions = {**document.partitions, label: data_key("t", label)}
    store.put(document_key("t"), render_document(replace(document, partitions=partitions)))


def test_files_of_another_program_are_measured_and_read(store):
    """Kartothek's: rows, sizes and types are not in our log, nor is there a log at first."""
    table = pa.table({"p": ["x", "x"], "a": [1, 2], "t": pa.array([5, None], pa.int32())})
    written_by_another(store, table)
    [found] = publish_datasets(store, "t")
    assert (found.format_version, found.problem) == (0, "")
    expected = sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    for name, read in READERS.items():
        rows = read(url_of(store)).to_pylist()
        assert sorted((row["p"], row["a"], row["t"]) for row in rows) == expected, name
    more = pa.table({"p": ["z"], "a": [3], "t": pa.array([6], pa.int32())})
    written_by_another(store, more, earlier=load_document(store, "t"))
    face = Store(str(store.root))
    face._store = store
    face.write_table("t", more)
    assert "are not known yet: store.relation('t').publish()" in problem(store)
    assert READERS["arrow"](url_of(store)).num_rows == 2
    publish_datasets(store, "t")
    assert (READERS["arrow"](url_of(store)).num_rows, problem(store)) == (4, "")


def test_folders_that_say_other_values_than_the_log_are_refused(store):
    """Kartothek leaves `/` in values as it is: some readers would take `a/b` for `a`."""
    table = pa.table({"p": ["a"], "v": [1]})
    written_by_another(store, table, "p=a/b")
    with pytest.raises(PublishError, match="readers would look for other values"):
        publish_datasets(store, "t")
    assert version_of(store, scope_of("t")) == 0


@needs_kartothek
def test_kartothek_leaves_the_log_alone(store):
    face = published(store, "delta")
    append(face, 3)
    kartothek(store, 'garbage_collect_dataset(dataset_uuid="t", store=store)')
    assert (numbers(store), problem(store)) == ([1, 2, 3], "")


def test_the_command_publishes_compares_and_stops(store):
    face = Store.of(store)
    face.write_table("t", ROWS)

    def run(*arguments):
        return CliRunner().invoke(main, ["--store", str(store.root), "publish", "t", *arguments])

    assert "ktk publish t" in run("--check").output
    assert "file://" in run().output
    assert run("--check").exit_code == 0
    store.faults.append(fail("before", "put_if_absent", "_delta_log"))
    append(face, 3)
    done = run("--check", "--json")
    assert (done.exit_code, json.loads(done.output)[0]["format_version"]) == (1, 0)
    assert run().exit_code == 0
    assert numbers(store) == [1, 2, 3]
    assert "no longer published" in run("--stop").output
    assert "Nothing was changed" in run("--stop").output
    assert run("--check", "--stop").exit_code == 2


def test_a_writer_that_is_overtaken_twice_does_not_go_back(store, monkeypatch):
    """Others commit before it puts its entry, and again before it reads the log once more."""
    from ktk_engine.publish.delta import delta_form as module

    face, reads = published(store, "delta"), []

    def read(*arguments):
        reads.append(1)
        if len(reads) in (1, 3):  # what these two commit themselves reads the log as well
            found = read_log(*arguments) if len(reads) == 1 else None
            append(face, 10 + len(reads))
            return found or read_log(*arguments)
        return read_log(*arguments)

    monkeypatch.setattr(module, "read_log", read)
    append(face, 3)
    monkeypatch.undo()
    assert (len(numbers(store)), problem(store)) == (5, "")
    versions = [item["ktk"]["version"] for item in deltalake.DeltaTable(url_of(store)).history()]
    assert versions == sorted(versions, reverse=True)


def test_what_is_asked_for_while_it_stops_stays(store, monkeypatch):
    from ktk_engine.publish.delta import delta_form as module

    published(store, "delta")
    delete = module.delete_log

    def late(*arguments):
        monkeypatch.undo()
        publish_datasets(store, "t")
        return delete(*arguments)

    monkeypatch.setattr(module, "delete_log", late)
    stop_publishing(store, "t")
    assert problem(store) == ""


def test_a_check_compares_the_log(store):
    face = published(store, "delta")
    assert check(store, "t").problems == ()
    store.faults.append(fail("before", "put_if_absent", "_delta_log"))
    append(face, 3)
    (found,) = check(store, "t").problems
    assert found.file == "t/_delta_log" and "version 3 is committed" in found.reason
    publish_datasets(store, "t")
    assert check(store, "t").problems == ()
