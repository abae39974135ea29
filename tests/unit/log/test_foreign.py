import json
import os
import re
from dataclasses import replace

import pyarrow as pa
import pytest
from click.testing import CliRunner

from ktk_engine.cli.main import main
from ktk_engine.errors import (
    CommitConflictError,
    ForeignWriterError,
    ForeignWriterWarning,
    FormatError,
    KtkError,
)
from ktk_engine.log.chain import read_entries
from ktk_engine.log.change import conflict as conflicts
from ktk_engine.log.scope import LogScope, scope_of
from ktk_engine.log.state import resolve
from ktk_engine.publish import publish as publishing  # deep: it crashes
from ktk_engine.publish.delta.file_actions import Statistics  # deep: what Delta is told of a file
from ktk_engine.snapshot.snapshot import is_own  # deep: whose files they are
from tests.support.changes import remove, undrop
from tests.support.committed import Snapshot, files_table, list_relations
from tests.support.dataset_builder import (
    DbtNode,
    airlines,
    airlines_builder,
    append_as_kartothek,
    append_ours,
    build_nyc,
    build_table,
    commit_change,
    flights,
    flights_builder,
    foreign_document,
    replace_partition,
    weather,
    weather_builder,
    write_plain,
    write_plain_nyc,
)
from tests.support.documents import document_key, load_document, render_document
from tests.support.stores import fail, keys
from tests.support.voices import COMMAND

CUBE = LogScope("cube", "nyc")
PLAIN = LogScope("dataset", "plain")


def test_linear_change_is_adopted(store):
    build_table(store)
    document = append_as_kartothek(store, "plain")
    state = resolve(store, PLAIN)
    assert state.datasets["plain"].foreign
    assert state.snapshot("plain").labels == list(document.partitions)
    append_ours(store)
    state = resolve(store, PLAIN)
    assert state.snapshot("plain").labels[:2] == list(document.partitions)
    assert state.snapshot("plain").files.num_rows == 3
    assert not state.datasets["plain"].foreign
    assert load_document(store, "plain").stamp.version == 2


def test_adopted_before_it_was_published(store):
    build_table(store)
    append_as_kartothek(store, "plain")
    store.faults.append(fail("before", "replace", "by-dataset-metadata"))
    assert append_ours(store).warning
    state = resolve(store, PLAIN)
    assert not state.datasets["plain"].foreign
    assert not state.datasets["plain"].problem
    assert append_ours(store).warning == ""
    assert resolve(store, PLAIN).snapshot("plain").files.num_rows == 4
    assert load_document(store, "plain").stamp.version == 3


def test_fork_is_refused_by_name(store):
    build_table(store)
    fork = foreign_document(store, "plain")
    build_table(store, table=pa.table({"a": [9]}))
    store.put(document_key("plain"), render_document(fork))
    with pytest.raises(ForeignWriterError, match=r"Dataset plain .*version 1, .*has version 2"):
        append_ours(store)
    with pytest.raises(ForeignWriterError, match=r"ktk adopt plain .*store.drop\('plain'\)"):
        append_ours(store)
    with pytest.warns(ForeignWriterWarning, match="read as the log has it"):
        snapshot = resolve(store, PLAIN).snapshot("plain")
    assert snapshot.files.num_rows == 1 and snapshot.labels != list(fork.partitions)
    assert resolve(store, PLAIN).version == 2


def test_edited_document_is_refused(store):
    build_table(store)
    data = store.get(document_key("plain"))
    store.put(document_key("plain"), data.replace(b'"partition_keys": []', b'"partition_keys":[]'))
    with pytest.raises(ForeignWriterError, match="does not fit its stamp"):
        append_ours(store)
    assert remove(store, "plain").version == 2


@pytest.mark.parametrize("damage", [lambda data: data[:-5], lambda data: b'{"ktk_commit": 3}'])
def test_damaged_document_is_named_and_can_be_removed(store, damage):
    build_table(store)
    store.put(document_key("plain"), damage(store.get(document_key("plain"))))
    state = resolve(store, PLAIN)
    if not state.datasets["plain"].stamp:
        with pytest.raises(ForeignWriterError, match="damaged"):
            append_ours(store)
    remove(store, "plain")
    assert resolve(store, PLAIN).datasets == {}
    assert not store.exists(document_key("plain"))


def test_document_deleted_by_another_program(store):
    build_nyc(store)
    store.delete([document_key("nyc++weather")])
    with pytest.raises(ForeignWriterError, match="was removed by another program"):
        flights_builder(store).commit_rebuild(flights())
    remove(store, "nyc", "weather")
    done = flights_builder(store).commit_rebuild(flights())
    assert (done.entry.version, done.warning) == (5, "")


@pytest.mark.parametrize("document", [None, b"{"])
def test_a_lost_document_is_written_anew_as_the_message_says(store, document):
    build_nyc(store)
    key = document_key("nyc++weather")
    before = store.get(key)
    store.delete([key])
    if document is not None:
        store.put(key, document)
    with pytest.raises(ForeignWriterError) as caught:
        flights_builder(store).commit_rebuild(flights())
    gone, back, *_ = caught.value.remedies
    assert (gone.kind, back.kind) == ("drop_dataset", "undrop_dataset")
    remove(store, **gone.arguments)
    undrop(store, **back.arguments)
    after = json.loads(store.get(key))
    assert after["partitions"] == json.loads(before)["partitions"]
    done = flights_builder(store).commit_rebuild(flights())
    assert done.warning == ""


@pytest.mark.parametrize("document", [None, b"{"])
def test_so_is_that_of_a_seed_dataset_with_those_that_depend_on_it(store, document):
    build_nyc(store)
    keys = [document_key(f"nyc++{name}") for name in ("flights", "weather", "airlines")]
    before = [json.loads(store.get(key))["partitions"] for key in keys]
    store.delete(keys[:1])
    if document is not None:
        store.put(keys[0], document)
    with pytest.raises(ForeignWriterError) as caught:
        flights_builder(store).commit_rebuild(flights())
    advice = re.search(r"write it again: ([\w ,-]+)", caught.value.said(COMMAND))
    assert advice is not None
    for command in advice[1].split(", and then "):
        done = CliRunner().invoke(main, ["--store", store.url, *command.split()[1:]], input="y")
        assert done.exit_code == 0, (command, done.output)
    assert [json.loads(store.get(key))["partitions"] for key in keys] == before


@pytest.mark.parametrize("crash", [False, True])
def test_what_was_removed_for_that_can_be_built_again(store, monkeypatch, crash):
    build_table(store)
    store.delete([document_key("plain")])
    with monkeypatch.context() as patched:
        if crash:  # nothing is published after the removal
            patched.setattr(publishing, "_publish", lambda *_: (publishing.Behind(), None))
        remove(store, "plain")
    assert build_table(store).warning == ""
    assert resolve(store, PLAIN).snapshot("plain").rows == 3
    assert load_document(store, "plain").stamp.version == 3


def test_a_writer_at_work_does_not_hide_that(store):
    build_nyc(store)
    store.delete([document_key("nyc++weather")])
    store.put(CUBE.intent_key("e" * 32), b'{"operation": "", "heartbeat": "2025-01-01T00:00:00"}')
    assert "removed by another program" in resolve(store, CUBE).datasets["nyc++weather"].problem


def test_two_deleted_documents_can_be_removed_one_by_one(store):
    build_nyc(store)
    store.delete([document_key(f"nyc++{name}") for name in ("weather", "airlines")])
    assert "nyc++weather" in remove(store, "nyc", "airlines").warning
    assert remove(store, "nyc", "weather").warning == ""
    assert set(resolve(store, CUBE).datasets) == {"nyc++flights"}


def test_plain_dataset_gets_a_log_at_its_first_write(store):
    document = write_plain(store, "plain", pa.table({"a": [1, 2]}))
    state = resolve(store, PLAIN)
    assert (state.version, state.snapshot("plain").files.num_rows) == (0, 1)
    assert not keys(store, ".ktk/")
    assert append_ours(store).entry.version == 1
    assert resolve(store, PLAIN).snapshot("plain").labels[0] == next(iter(document.partitions))
    assert load_document(store, "plain").stamp.version == 1


def test_other_datasets_of_a_plain_cube_are_adopted(store):
    write_plain_nyc(store)
    done = airlines_builder(store).commit_rebuild(airlines())
    assert done.warning == ""
    operations = {uuid: change.operation for uuid, change in done.entry.changes.items()}
    assert operations == {
        "nyc++airlines": "rebuild",
        "nyc++flights": "adopt",
        "nyc++weather": "adopt",
    }
    assert all(item.stamp for item in resolve(store, CUBE).datasets.values())


def test_two_first_writes_to_a_plain_cube(store):
    write_plain_nyc(store)
    base = resolve(store, CUBE)
    airlines_builder(store).commit_rebuild(airlines(), base)
    # The winner adopted the weather as this writer found it: no contradiction.
    done = weather_builder(store).commit_rebuild(weather(), base)
    assert done.entry.version == 2


def test_adopting_something_else_is_a_conflict(store):
    write_plain_nyc(store)
    base = resolve(store, CUBE)
    write_plain(store, "nyc++weather", weather(["EWR"]), ("origin",), {"ktk_cube_is_seed": False})
    airlines_builder(store).commit_rebuild(airlines())
    with pytest.raises(CommitConflictError, match="changed by another program"):
        weather_builder(store).commit_rebuild(weather(), base)


def rows_of(origins, delay=10):
    return flights(list(origins), delay)


@pytest.mark.parametrize("listed", [1_000, 0])
@pytest.mark.parametrize("logged", [True, False])
def test_what_a_commit_on_top_of_a_foreign_document_changed(store, monkeypatch, listed, logged):
    """Both start from the document: only what the winner itself did is a conflict."""
    monkeypatch.setattr(conflicts, "_MOST_LISTED", listed)
    builder = DbtNode(store, "t", ("origin",))
    if logged:
        builder.commit_rebuild(rows_of("ABC"))
        append_as_kartothek(store, "t", rows_of("D"), ("origin",))
    else:
        write_plain(store, "t", rows_of("ABCD"), ("origin",))
    base = resolve(store, scope_of("t"))
    commit_change(store, replace_partition(builder, "origin", "B", rows_of("BCD", 5)), base)
    for origin in "BCD":
        with pytest.raises(CommitConflictError, match=f"both touch partition origin={origin}"):
            replaced = replace_partition(builder, "origin", origin, rows_of(origin, 6))
            commit_change(store, replaced, base)
    replaced = replace_partition(builder, "origin", "A", rows_of("A", 6))
    assert commit_change(store, replaced, base).entry.version == 2 + logged


@pytest.mark.parametrize("listed", [1_000, 0])
def test_a_winner_does_not_hide_the_document_that_it_took_over(store, monkeypatch, listed):
    monkeypatch.setattr(conflicts, "_MOST_LISTED", listed)
    builder = DbtNode(store, "t", ("origin",))
    builder.commit_rebuild(rows_of("AB"))
    base = resolve(store, scope_of("t"))
    append_as_kartothek(store, "t", rows_of("D"), ("origin",))
    builder.commit_append(rows_of("B", 5))
    replaced = replace_partition(builder, "origin", "D", rows_of("D", 6))
    with pytest.raises(CommitConflictError, match="was changed by another program by version 2"):
        commit_change(store, replaced, base)
    later = resolve(store, scope_of("t"))
    builder.commit_append(rows_of("B", 7))
    assert commit_change(store, replaced, later).entry.version == 4


@pytest.mark.filterwarnings("ignore::ktk_engine.errors.ForeignWriterWarning")
@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("state_of_document", ["linear", "fork", "never ours"])
def test_removed_foreign_document_does_not_come_back(store, state_of_document, crash):
    if state_of_document == "never ours":
        write_plain(store, "plain", pa.table({"a": [1, 2]}))
    else:
        build_table(store)
        document = foreign_document(store, "plain")
        if state_of_document == "fork":
            build_table(store)
        store.put(document_key("plain"), render_document(document))
    if crash:
        store.faults.append(fail("before", "delete", "by-dataset-metadata"))
    assert bool(remove(store, "plain").warning) == crash
    assert store.exists(document_key("plain")) == crash
    state = resolve(store, PLAIN)
    assert state.datasets == {}
    done = build_table(store)
    assert done.warning == ""
    assert resolve(store, PLAIN).snapshot("plain").rows == 3
    assert resolve(store, PLAIN).datasets["plain"].stamp.version == done.entry.version


def test_pending_removal_is_carried_through_other_commits(store):
    write_plain_nyc(store)
    store.faults.append(fail("before", "delete", "by-dataset-metadata"))
    remove(store, "nyc", "weather")
    store.faults.append(fail("before", "delete", "by-dataset-metadata"))
    airlines_builder(store).commit_rebuild(airlines())
    state = resolve(store, CUBE)
    assert state.unpublished_removals == ("nyc++weather",)
    assert [relation.name for relation in list_relations(store)] == ["airlines", "flights"]
    airlines_builder(store).commit_rebuild(airlines())
    assert not store.exists(document_key("nyc++weather"))
    airlines_builder(store).commit_rebuild(airlines())
    assert resolve(store, CUBE).head.removed == {}


def test_dataset_written_anew_by_another_program_after_its_removal(store):
    build_table(store)
    remove(store, "plain")
    write_plain(store, "plain", pa.table({"a": [1]}))
    assert resolve(store, PLAIN).datasets["plain"].foreign
    append_ours(store)
    assert resolve(store, PLAIN).snapshot("plain").files.num_rows == 2


def test_missing_log_is_named(store):
    build_table(store)
    store.delete(keys(store, ".ktk/"))
    with pytest.raises(ForeignWriterError, match=r"log entry .* is missing"):
        resolve(store, PLAIN)


def test_stamp_is_not_part_of_what_kartothek_keeps(store):
    build_table(store)
    content = json.loads(store.get(document_key("plain")))
    assert next(iter(content)) == "ktk_commit"
    assert [entry.operation for entry, _ in read_entries(store, PLAIN, 0)] == ["rebuild"]


def test_a_damaged_schema_names_file_and_dataset(store):
    write_plain(store, "plain", pa.table({"a": [1]}))
    store.put("plain/table/_common_metadata", b"PAR1 no more")
    with pytest.raises(FormatError, match=r"_common_metadata of dataset plain .*damaged"):
        resolve(store, PLAIN).snapshot("plain")


@pytest.mark.parametrize("instead", ["folder", "link", "pipe"])
def test_what_lies_in_a_documents_place_is_no_missing_document(store, instead):
    write_plain_nyc(store)
    path = store.root / document_key("nyc++flights")
    path.rename(path.with_name("away"))
    {
        "folder": path.mkdir,
        "link": lambda: path.symlink_to("away"),
        "pipe": lambda: os.mkfifo(path),
    }[instead]()
    with pytest.raises(KtkError, match=re.escape(path.name)):
        resolve(store, CUBE).snapshot("nyc++flights")


def test_whose_file_it_is():
    files = files_table([*"abc"], [*"abc"], pa.table({}), {"own": [True, False, None]})
    assert is_own(files).to_pylist() == [True, False, False]


def test_readers_of_delta_get_no_bounds_of_other_programs(store):
    table = pa.table({"i": [2, 1], "s": ["a", None]})
    files = DbtNode(store, "t").files(table, "c")[0]
    snapshot = Snapshot("t", table.schema, (), files)
    (ours,) = Statistics.of(replace(snapshot, file_table=_owned(files, True))).texts()
    (theirs,) = Statistics.of(replace(snapshot, file_table=_owned(files, False))).texts()
    counts = {"numRecords": 2, "nullCount": {"i": 0, "s": 1}}
    assert json.loads(theirs) == {**counts, "minValues": {}, "maxValues": {}}
    assert json.loads(ours)["maxValues"]["i"] == 2


def _owned(files, own):
    place = files.schema.get_field_index("own")
    return files.set_column(place, "own", pa.array([own] * files.num_rows))
