"""A flipped bit, a missing or an exchanged file is an error that names the file."""

from __future__ import annotations

import json
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ktk_engine.errors import FormatError, KtkError
from ktk_engine.log.chain import read_entries
from ktk_engine.log.entry import parse_entry
from ktk_engine.log.garbage import Retention, find_garbage
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import resolve
from ktk_engine.publish.published_forms import owned_by_form  # deep: given by clean-ups
from tests.support.changes import remove
from tests.support.committed import read_history, read_snapshot
from tests.support.dataset_builder import DbtNode, build_nyc, build_table
from tests.support.documents import ViewDocument, parse_view, render_checksummed, render_view

PLAIN = scope_of("plain")
NOTHING = Retention(timedelta(0), 1)


def versions(store, count=5):
    """A table with some versions."""
    build_table(store)
    for number in range(count - 1):
        rows = pa.table({"a": [number]})
        DbtNode(store, "plain").commit_append(rows)


def path(store, version):
    return store.root / PLAIN.entry_key(version)


def flips(data, count):
    """Copies of some bytes with one flipped bit each, spread over all of them."""
    bits = 8 * len(data)
    for bit in range(0, bits, max(bits // count, 1)):
        copy = bytearray(data)
        copy[bit // 8] ^= 1 << (bit % 8)
        yield bit, bytes(copy)


def test_every_flip_in_a_log_entry_is_seen(store):
    build_table(store)
    data = path(store, 1).read_bytes()
    good = parse_entry(data, "k")
    for bit, damaged in flips(data, 501):
        with pytest.raises(FormatError, match=r"(?s)Log entry key\.json.*(backup|Upgrade)"):
            parse_entry(damaged, "key.json")
            pytest.fail(f"bit {bit}")
    assert parse_entry(data, "k") == good


def test_every_flip_in_a_view_is_seen():
    data = render_view(ViewDocument("v", "view", sql="select a from t where a > 1"))
    for _, damaged in flips(data, 501):
        with pytest.raises(FormatError, match=r"View v\.json"):
            parse_view(damaged, "v.json")


def test_every_flip_in_a_snapshot_is_seen(store):
    build_table(store)
    entry = resolve(store, PLAIN).datasets["plain"].entry
    file = store.root / entry.snapshot
    data = file.read_bytes()
    for _, damaged in flips(data, 101):
        file.write_bytes(damaged)
        with pytest.raises(FormatError) as error:
            resolve(store, PLAIN).snapshot("plain")
        assert entry.snapshot in str(error.value)


def without_key(name):
    return lambda document: document.pop(name)


@pytest.mark.parametrize(
    "damage",
    [
        without_key("uuid"),
        without_key("indices"),
        lambda document: document.update(schema="no base64 *"),
        lambda document: document.update(schema="YWJj"),
        lambda document: document.update(partition_keys=5),
        lambda document: document.update(physical_schemas=None),
        lambda document: document.update(index_digests=[1]),
    ],
)
def test_a_damaged_snapshot_of_an_older_version_is_one_error(store, damage):
    """Without a digest not all can be seen, but none may end in anything but our error."""
    build_table(store)
    key = resolve(store, PLAIN).datasets["plain"].entry.snapshot
    table = pq.ParquetFile(store.root / key).read()
    document = json.loads(table.schema.metadata[b"ktk"])
    damage(document)
    pq.write_table(table.replace_schema_metadata({"ktk": json.dumps(document)}), store.root / key)
    with pytest.raises(FormatError, match=key):
        read_snapshot(store, key)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"x" * 500, b"PAR1" + b"x" * 500 + b"PAR1"])
def test_what_is_no_snapshot_is_one_error(store, data):
    store.put("s.parquet", data)
    with pytest.raises(FormatError, match=r"Snapshot s\.parquet"):
        read_snapshot(store, "s.parquet")


def test_an_exchanged_snapshot_is_seen(store):
    versions(store, 2)
    old, new = (entry.datasets["plain"] for entry, _ in read_entries(store, PLAIN, 0))
    (store.root / new.snapshot).write_bytes((store.root / old.snapshot).read_bytes())
    with pytest.raises(FormatError, match=new.snapshot):
        resolve(store, PLAIN).snapshot("plain")


def test_a_missing_entry_in_the_middle_hides_no_newer_one(store):
    versions(store)
    (store.root / "plain.by-dataset-metadata.json").unlink()
    (store.root / PLAIN.published_key("plain")).unlink()
    path(store, 3).unlink()
    assert resolve(store, PLAIN).version == 5


def test_a_missing_entry_behind_the_published_one_hides_no_newer_one(store):
    versions(store)
    document = store.root / "plain.by-dataset-metadata.json"
    old = document.read_bytes()
    for number in range(3):  # three commits whose publishing never happened
        rows = pa.table({"a": [number]})
        DbtNode(store, "plain").commit_append(rows)
    document.write_bytes(old)
    path(store, 6).unlink()
    assert resolve(store, PLAIN).version == 8


def test_the_newest_entry_is_missed_where_a_document_names_it(store):
    versions(store)
    path(store, 5).unlink()
    with pytest.raises(KtkError, match=r"00000000000000000005\.json.*missing"):
        resolve(store, PLAIN)


def test_an_entry_under_another_name_is_refused(store):
    versions(store)
    path(store, 5).write_bytes(path(store, 4).read_bytes())
    with pytest.raises(FormatError, match=r"00000000000000000005\.json"):
        resolve(store, PLAIN)


@pytest.mark.parametrize("version", [1, 3, 4])
def test_history_names_a_missing_entry(store, version):
    versions(store)
    path(store, version).unlink()
    found = read_history(store, "plain")
    assert [item.version for item in found] == [5, 4, 3, 2, 1]
    problems = {item.version: item.problem for item in found if item.problem}
    assert list(problems) == [version]
    assert f"{version:020d}.json" in problems[version]
    after = next(item for item in found if item.version == version + 1)
    assert after.changes[0].rows_delta is None
    assert after.changes[0].files_delta is None


def test_history_names_a_damaged_and_an_exchanged_entry(store):
    versions(store)
    path(store, 2).write_bytes(path(store, 2).read_bytes().replace(b'"rows": 4', b'"rows": 5'))
    other = json.loads(path(store, 4).read_bytes())
    for name in ("sha256", "format", "needs"):
        del other[name]
    # Another entry with a digest of its own: nothing but the chain can tell.
    path(store, 4).write_bytes(render_checksummed(other | {"history": {"reason": "another"}}))
    problems = {item.version: item.problem for item in read_history(store, "plain") if item.problem}
    assert list(problems) == [4, 2]
    assert "version 5 was built on another" in problems[4]


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_a_broken_chain_stops_the_clean_up(store, harm):
    versions(store)
    if harm == "missing":
        path(store, 4).unlink()
    else:
        path(store, 4).write_bytes(path(store, 4).read_bytes()[:-30])
    with pytest.raises(FormatError, match=r"00000000000000000004\.json.*Nothing was deleted"):
        find_garbage(store, PLAIN, Retention(timedelta(days=7), 2), owned_by_form)
    with pytest.raises(FormatError):
        find_garbage(store, PLAIN, Retention(timedelta(0), 2), owned_by_form)


def test_what_the_clean_up_cannot_need_does_not_stop_it(store):
    versions(store)
    path(store, 2).unlink()
    found = find_garbage(store, PLAIN, Retention(timedelta(0), 2), owned_by_form)
    assert found.kept_versions == 2


def test_a_damaged_snapshot_of_history_stops_the_clean_up(store):
    versions(store)
    third = next(read_entries(store, PLAIN, 2))[0].datasets["plain"].snapshot
    (store.root / third).write_bytes(b"PAR1 no more")
    with pytest.raises(FormatError, match=third):
        find_garbage(store, PLAIN, Retention(timedelta(days=7), 10), owned_by_form)


def test_a_commit_builds_on_no_broken_chain(store):
    versions(store)
    base = resolve(store, PLAIN)
    build_table(store)
    build_table(store)
    path(store, 6).unlink()
    with pytest.raises(FormatError, match=r"00000000000000000006\.json"):
        DbtNode(store, "plain").commit_append(pa.table({"a": [1]}), base)


def test_a_removal_needs_no_old_entries(store):
    build_nyc(store)
    remove(store, "nyc", "weather")
    (store.root / scope_of("nyc++flights").entry_key(2)).unlink()
    remove(store, "nyc", "airlines")
    assert list(resolve(store, scope_of("nyc++flights")).datasets) == ["nyc++flights"]
