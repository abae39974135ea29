"""Iceberg metadata that were damaged, spared, overtaken, moved, or registered elsewhere."""

import json
from contextlib import suppress
from datetime import timedelta
from io import BytesIO

import fastavro
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from ktk_engine import Store
from ktk_engine.errors import FormatError
from ktk_engine.publish.iceberg import iceberg_version
from ktk_engine.publish.iceberg.iceberg_metadata import Addresses
from ktk_engine.publish.iceberg.iceberg_version import IcebergVersion
from ktk_engine.publish.iceberg.manifest import read_list
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
    check_publishing,
    publish_datasets,
    publish_head,
    run_cleanup,
    stop_publishing,
)
from tests.support.committed import resolve, scope_of
from tests.support.published_table import append, problem, published
from tests.support.stores import LocalStore, fail

NOTHING = Retention(timedelta(0), 1)


def rewritten(store, **changes):
    """Change the newest metadata, as a program does that does not know better."""
    file = file_of(store, newest(store).version)
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def other_schema():
    sink = BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "status", "type": "int"}]}
    fastavro.writer(sink, fastavro.parse_schema(schema), [{"status": 1}])
    return sink.getvalue()


DAMAGE = {
    "empty": lambda data: b"",
    "no Avro": lambda data: b"Obj\x01torn",
    "torn": lambda data: data[: len(data) * 9 // 10],
    "torn early": lambda data: data[:40],
    "schema": lambda data: data.replace(b'"type"', b'"tape"'),
    "no JSON": lambda data: data.replace(b'"record"', b'"record]'),
    "codec": lambda data: data.replace(b"deflate", b"deflata"),
    "block": lambda data: data[:-60] + bytes(40) + data[-20:],
    "another schema": lambda data: other_schema(),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("files", [lists, manifests])
def test_a_damaged_file_is_named_and_written_anew(store, files, damage):
    face = published(store, "iceberg")
    append(face, 3)
    for file in files(store):
        file.write_bytes(DAMAGE[damage](file.read_bytes()))
    said = problem(store)
    assert "is damaged" in said and any(file.name in said for file in files(store))
    if files is lists:
        append(face, 4)
    else:
        face.table("t").delete("x = 3")
        append(face, 3)
        append(face, 4)
    assert (numbers(store), problem(store)) == ([1, 2, 3, 4], "")


def test_any_flipped_byte_is_damage_or_not_noticed(store):
    published(store, "iceberg")
    [file] = lists(store)
    data, path = file.read_bytes(), newest(store).snapshot["manifest-list"]
    addresses = Addresses.of(store, "t", newest(store).metadata["location"])
    refused = 0
    for at in range(len(data)):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        try:
            read_list(addresses, path)
        except FormatError as error:
            assert file.name in str(error)
            refused += 1
    assert refused > len(data) // 4


@pytest.mark.filterwarnings("ignore::ktk_engine.errors.PublishWarning")
@pytest.mark.parametrize(
    "changes",
    [
        {"snapshots": 3},
        {"snapshots": [3]},
        {"schemas": [{"schema-id": 0, "fields": [{"id": 1}]}]},
        {"schemas": [{"schema-id": 0, "fields": [{"id": 1, "name": "x", "type": {}}]}]},
        {"partition-specs": [{"spec-id": 0, "fields": [3]}]},
        {"last-partition-id": None},
        {"last-column-id": "x"},
        {"last-column-id": "7"},
        {"last-partition-id": "1000"},
        {"properties": [["a", "b"]]},
        {"schemas": [{"schema-id": "0", "fields": []}]},
        {"current-snapshot-id": 77},
        {"properties": {}},
        {"properties": None},
        {"properties": 3},
        {"table-uuid": None},
        {"location": None},
    ],
    ids=str,
)
def test_damaged_metadata_do_not_stop_publishing(store, changes, caplog):
    face = published(store, "iceberg")
    rewritten(store, **changes)
    assert problem(store)
    append(face, 3)
    append(face, 4)
    assert "Iceberg" not in caplog.text
    assert (numbers(store), problem(store)) == ([1, 2, 3, 4], "")


@pytest.mark.filterwarnings("ignore::ktk_engine.errors.PublishWarning")
def test_a_snapshot_of_ours_that_lacks_something(store):
    face = published(store, "iceberg")
    append(face, 3)
    items = newest(store).snapshots
    for said in ({"ktk.snapshot-sha256": None}, {"ktk.snapshot": 3}, {"ktk.snapshot": "../x"}):
        rewritten(store, snapshots=[{**i, "summary": {**i["summary"], **said}} for i in items])
        assert problem(store)
        append(face, 3)
        face.table("t").delete("x = 3")
        append(face, 3)
        assert (numbers(store), problem(store)) == ([1, 2, 3], ""), said
        items = newest(store).snapshots
    for name in ("schema-id", "manifest-list", "timestamp-ms", "summary"):
        less = [{k: v for k, v in item.items() if k != name} for item in items]
        rewritten(store, snapshots=less)
        assert problem(store)
        publish_datasets(store, "t")
        assert (numbers(store), problem(store)) == ([1, 2, 3], ""), name


def test_a_damaged_list_does_not_keep_the_version_from_readers(store, monkeypatch, caplog):
    monkeypatch.setattr(iceberg_version, "_TIDIED_EVERY", 1)
    face = published(store, "iceberg")
    append(face, 3)
    lists(store)[0].write_bytes(b"Obj\x01torn")
    lists(store)[1].write_bytes(b"Obj\x01torn")
    append(face, 4)
    assert "not published" not in caplog.text
    assert (numbers(store), problem(store)) == ([1, 2, 3, 4], "")


def test_a_hint_alone_that_is_behind_is_mended_without_a_version(store):
    face = published(store, "iceberg")
    append(face, 3)
    hint = folder(store) / "version-hint.text"
    hint.write_text("1")
    assert "version-hint.text" in problem(store)
    assert numbers(store) == [1, 2]
    publish_datasets(store, "t")
    assert (newest(store).version, hint.read_text(), problem(store)) == (2, "2", "")
    hint.write_text("1")
    assert publish_head(store, scope_of("t")).warning == ""
    assert (hint.read_text(), numbers(store)) == ("2", [1, 2, 3])


@pytest.mark.parametrize("verb", ["publish", "delete"])
def test_a_file_that_two_manifests_name_is_noticed(store, verb):
    face = published(store, "iceberg")
    append(face, 3)
    file = store.root / newest(store).snapshot["manifest-list"].partition(f"{store.root}/")[2]
    reader = fastavro.reader(BytesIO(file.read_bytes()))
    records, schema = list(reader), reader.writer_schema
    twin = manifests(store)[0].with_name(f"ktk-twin-0.{manifests(store)[0].name.split('.', 1)[1]}")
    path = next(
        r["manifest_path"] for r in records if manifests(store)[0].name in r["manifest_path"]
    )
    twin.write_bytes(manifests(store)[0].read_bytes())
    again = next(r for r in records if r["manifest_path"] == path)
    records.append({**again, "manifest_path": path.replace(manifests(store)[0].name, twin.name)})
    sink = BytesIO()
    fastavro.writer(sink, schema, records)
    file.write_bytes(sink.getvalue())
    assert len(numbers(store)) > 3
    assert "twice" in problem(store)
    if verb == "delete":
        face.table("t").delete("x < 4")
        append(face, 1)
        assert (numbers(store), problem(store)) == ([1], "")
    else:
        publish_datasets(store, "t")
        assert (numbers(store), problem(store)) == ([1, 2, 3], "")


def test_a_full_rewrite_is_no_append(store):
    face = published(store, "iceberg")
    append(face, 3)
    face.table("t").delete("x = 1")
    for file in lists(store):
        file.write_bytes(b"")
    append(face, 4)
    said = [item["summary"] for item in newest(store).snapshots]
    assert [item["operation"] for item in said] == ["append", "append", "overwrite", "overwrite"]
    assert [said[-1][name] for name in ("added-records", "deleted-records")] == ["3", "2"]
    face.write_table("t", pa.table({"x": [9], "s": [1.5]}), "overwrite")
    assert newest(store).snapshot["summary"]["operation"] == "overwrite"
    face.table("t").delete("x > 0")
    assert newest(store).snapshot["summary"]["operation"] == "delete"


def test_a_clean_up_keeps_files_of_a_version_whose_writer_lives(store):
    """Its note spares its snapshot, so what was published of it stays, too."""
    face = published(store, "iceberg")
    store.faults.append(fail("before", "delete", "/intent/"))
    append(face, 3)
    for value in (4, 5):
        face.write_table("t", pa.table({"x": [value], "s": ["z"]}), "overwrite")
    done = run_cleanup(store, scope_of("t"), NOTHING)
    assert not done.warning
    assert 3 in time_travels(store)
    earlier = face.table("t").at(version=3).query().to_arrow(engine="local")
    assert sorted(earlier["x"].to_pylist()) == [1, 2, 3]
    face.write_table("t", pa.table({"x": [6], "s": ["z"]}), "overwrite")
    assert time_travels(store)[-1] == 7
    assert (numbers(store), problem(store)) == ([6], "")


@pytest.mark.parametrize("first", ["delta", "iceberg"])
@pytest.mark.parametrize("stops", [False, True])
def test_two_formats_published_at_once_both_stay(store, first, stops):
    [second] = {"delta", "iceberg"} - {first}
    Store.of(store).write_table("t", pa.table({"x": [1], "s": ["a"]}))
    if stops:
        publish_datasets(store, "t", formats=(second,))

    def meanwhile(method, key):
        if "/log/" in key:
            store.hooks.clear()
            other = LocalStore(store.root)
            if stops:
                stop_publishing(other, "t", formats=(second,))
            else:
                publish_datasets(other, "t", formats=(second,))

    store.hooks.append(meanwhile)
    publish_datasets(store, "t", formats=(first,))
    assert not store.hooks
    found = check_publishing(store, "t")
    assert {item.format for item in found} == ({first} if stops else {first, second})
    assert {item.problem for item in found} == {""}
    assert (store.list_names("t/_delta_log") == []) == (stops and second == "delta")


def test_a_store_opened_through_a_link_was_not_moved(store, tmp_path):
    face = published(store, "iceberg")
    location, before = newest(store).metadata["location"], {*manifests(store)}
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "a"
    link.symlink_to(store.root, target_is_directory=True)
    other = Store(link)
    append(other, 3)
    assert newest(store).metadata["location"] == location
    assert before < {*manifests(store)} and len(newest(store).snapshots) == 2
    assert newest(store).snapshot["summary"]["operation"] == "append"
    assert [found.problem for found in check_publishing(other._store, "t")] == [""]
    append(face, 4)
    assert (numbers(store), problem(store)) == ([1, 2, 3, 4], "")
    assert time_travels(store) == [2, 3, 4]


@pytest.mark.parametrize("is_seen", [True, False], ids=["both mounts here", "one mount here"])
def test_hosts_that_share_a_link_but_no_mount_write_no_addresses_in_turns(tmp_path, is_seen):
    """A host's link leads to the same folder under another path, where the first may be unknown."""
    mounts, lake, hosts = tmp_path / "mounts", tmp_path / "lake", ("one", "other")
    (mounts / "one").mkdir(parents=True)
    lake.symlink_to(mounts / "one", target_is_directory=True)
    published(LocalStore(lake), "iceberg")
    for value in (3, 4):
        append(Store(lake), value)
    first, locations = newest(LocalStore(lake)), []
    for number, value in enumerate(range(5, 9), 1):
        was, now = hosts[(number - 1) % 2], hosts[number % 2]
        with suppress(FileNotFoundError):
            (mounts / now).unlink()  # a link that stood for the other mount
        (mounts / was).rename(mounts / now)
        if is_seen:
            (mounts / was).symlink_to(mounts / now, target_is_directory=True)
        lake.unlink()
        lake.symlink_to(mounts / now, target_is_directory=True)
        append(Store(lake), value)
        store = LocalStore(lake)
        assert (numbers(store), problem(store)) == ([*range(1, value + 1)], "")
        locations.append(newest(store).metadata["location"])
    assert len({*locations}) == 1
    kept = 3 * is_seen + 4
    assert time_travels(store) == [*range(9 - kept, 9)]
    assert not is_seen or locations[0] == first.metadata["location"]


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
@pytest.mark.parametrize("verb", ["head", "clean-up"])
def test_an_enrichment_that_stayed_behind_is_published_with_the_head(store, format_, verb):
    face = Store.of(store)
    face.build("c", pa.table({"d": [1, 2], "v": [1.0, 2.0]}), dimension_columns=["d"])
    face.cube("c").extend({"e": pa.table({"d": [1, 2], "w": [3.0, 4.0]})})
    face.cube("c").publish(format_)
    store.faults.append(fail("before", "put_if_absent", "c++e/" + _record(format_)))
    face.cube("c").update({"e": pa.table({"d": [1, 2], "w": [5.0, 6.0]})})
    assert [bool(found.problem) for found in check_publishing(store, "c")] == [True, False]
    scope = resolve(store, scope_of("c++e")).scope
    if verb == "head":
        assert publish_head(store, scope).warning == ""
    else:
        assert run_cleanup(store, scope, Retention()).warning == ""
    assert [found.problem for found in check_publishing(store, "c")] == ["", ""]


def _record(format_):
    return "_delta_log" if format_ == "delta" else "iceberg"


def test_what_a_catalog_may_have_registered_stays_while_its_snapshot_does(store, monkeypatch):
    monkeypatch.setattr(iceberg_version, "_UNNAMED_LIFETIME", timedelta(0))
    monkeypatch.setattr(iceberg_version, "_TIDIED_EVERY", 1)
    face = published(store, "iceberg")
    for value in range(3, 40):
        append(face, value)
    kept = {item["snapshot-id"] for item in newest(store).snapshots}
    for version in range(1, newest(store).version + 1):
        if file_of(store, version).exists():
            registered = json.loads(file_of(store, version).read_text())
            if registered["current-snapshot-id"] in kept:
                kept.remove(registered["current-snapshot-id"])
                table = StaticTable.from_metadata(f"file://{file_of(store, version)}")
                assert table.scan().to_arrow().num_rows == version + 1
    assert not kept
    assert not file_of(store, 1).exists()


def test_what_a_catalog_has_registered_outlives_clean_ups_while_its_snapshot_does(
    store, monkeypatch
):
    """Clean-ups write versions without a snapshot, so the last versions hold few snapshots."""
    monkeypatch.setattr(iceberg_version, "_UNNAMED_LIFETIME", timedelta(0))
    face = published(store, "iceberg")
    face.table("t").tag("q1")
    for value in range(3, 18):
        face.write_table("t", pa.table({"x": [value], "s": ["z"]}), "overwrite")
        run_cleanup(store, scope_of("t"), NOTHING)
    assert newest(store).version > 25
    for version in (1, newest(store).version):  # of the tag and of the head
        table = StaticTable.from_metadata(f"file://{file_of(store, version)}")
        assert table.scan().to_arrow().num_rows == 2 - (version > 1)
    assert not file_of(store, 2).exists()
    assert len(list(folder(store).glob("v*"))) <= 24
    face.table("t").untag("q1")
    for value in range(18, 20):
        face.write_table("t", pa.table({"x": [value], "s": ["z"]}), "overwrite")
        run_cleanup(store, scope_of("t"), NOTHING)
    assert not file_of(store, 1).exists()


def test_an_old_version_that_is_damaged_goes(store, monkeypatch):
    monkeypatch.setattr(iceberg_version, "_UNNAMED_LIFETIME", timedelta(0))
    monkeypatch.setattr(iceberg_version, "_KEPT_VERSIONS", 1)
    monkeypatch.setattr(iceberg_version, "_TIDIED_EVERY", 1)
    face = published(store, "iceberg")
    for version, damage in enumerate((b"", b"[]", b"\xff", b"{}"), 1):
        append(face, version)
        file_of(store, version).write_bytes(damage)
    for value in (5, 6):
        append(face, value)
    assert problem(store) == ""
    found = sorted(file.name for file in folder(store).glob("v*.json"))
    assert found == ["v5.metadata.json", "v6.metadata.json", "v7.metadata.json"]


def test_a_slow_writer_finds_the_version_before_its_own(store, monkeypatch):
    monkeypatch.setattr(iceberg_version, "_UNNAMED_LIFETIME", timedelta(0))
    monkeypatch.setattr(iceberg_version, "_TIDIED_EVERY", 1)
    face = published(store, "iceberg")
    for value in (3, 4):
        append(face, value)
    follows, seen = IcebergVersion.follows, []

    def slow(self):
        if not seen:
            seen.append(self.version)
            append(Store.of(LocalStore(store.root)), 6)
        return follows(self)

    monkeypatch.setattr(IcebergVersion, "follows", slow)
    append(face, 5)
    assert seen == [4]
    assert (numbers(store), problem(store)) == ([1, 2, 3, 4, 5, 6], "")
    assert (newest(store).version, time_travels(store)) == (5, [2, 3, 4, 5, 6])
