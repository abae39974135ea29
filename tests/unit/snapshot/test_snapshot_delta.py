"""Snapshots of large datasets say what changed since a whole one, and read as whole ones do."""

from __future__ import annotations

import json
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktk_engine.errors import CommitConflictError, FormatError, VersionGoneError
from ktk_engine.log import entry as entry_module
from ktk_engine.snapshot import snapshot as snapshot_module
from ktk_engine.log import snapshot_delta
from ktk_engine.log.chain import read_entries
from ktk_engine.log.change.conflict import check_needed
from ktk_engine.log.garbage import Retention
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import resolve
from ktk_engine.maintain.check_log import check_log  # deep: finds lost deltas
from ktk_engine.snapshot.snapshot import concat_files, files_table, read_snapshot
from ktk_engine.snapshot.snapshot_delta import ExtendedFiles, SnapshotBase, find_delta
from tests.support.changes import plan_cleanup, remove, run_cleanup, tag_version, undrop
from tests.support.dataset_builder import Builder, commit_change
from tests.support.stores import keys

PLAIN = LogScope("dataset", "plain")
NOTHING = Retention(timedelta(0), 1)


def _files(numbers, columns=("min.a",)):
    labels = [f"p={number}/x" for number in numbers]
    partitions = pa.table({"p": pa.array(numbers, pa.int64())})
    bounds = pa.table({name: pa.array(numbers, pa.int64()) for name in columns})
    return files_table(labels, labels, partitions, {"rows": list(numbers)}, bounds)


def _renumbered(files):
    return files.set_column(0, "position", pa.array(np.arange(files.num_rows)))


@settings(deadline=None)
@given(
    st.lists(st.booleans(), min_size=1, max_size=8),
    st.integers(0, 4),
    st.sampled_from([("min.a",), ("min.a", "min.b"), ("min.b",), ()]),
    st.data(),
)
def test_reads_as_a_whole_table_does(gone, more, columns, data):
    base = _files(range(len(gone)))
    left = base.filter(pa.array([not item for item in gone]))
    added = _files(range(100, 100 + more), columns)
    files = _renumbered(concat_files([left, added]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot_delta, "LEAST_FILES", 1)
        patch.setattr(snapshot_delta, "_MOST", 0)
        delta = find_delta(base, files)
        assert delta is not None
        assert delta.removed.tolist() == [n for n, item in enumerate(gone) if item]
        assert delta.added.num_rows == more
        # Anything else that changed of the files that stayed is no delta.
        if left.num_rows:
            rows = files["rows"].to_pylist()
            other = pa.array([-1, *rows[1:]], pa.int64())
            place = files.schema.get_field_index("rows")
            assert find_delta(base, files.set_column(place, "rows", other)) is None
        if files.num_rows > 1:  # positions that start elsewhere
            assert find_delta(base, files.slice(1)) is None
    built = ExtendedFiles(SnapshotBase("b", "", base), delta)
    assert (built.num_rows, built.column_names) == (files.num_rows, files.column_names)
    names = data.draw(st.lists(st.sampled_from(files.column_names), unique=True))
    mask = data.draw(st.lists(st.booleans(), min_size=len(files), max_size=len(files)))
    mask = pa.array(mask, pa.bool_())
    assert built.some(mask, built.column_names).equals(files.filter(mask))
    assert not names or built.some(mask, names).equals(files.select(names).filter(mask))
    assert built.select(names).equals(files.select(names))
    assert built.select(names).num_rows == files.num_rows
    assert built.select(built.column_names).equals(files)


@pytest.fixture
def grown(store, monkeypatch):
    """Four files, then one more, then another: a whole snapshot and two that build on it."""
    monkeypatch.setattr(snapshot_delta, "LEAST_FILES", 4)
    monkeypatch.setattr(snapshot_delta, "_MOST", 2)
    builder = Builder(store, "plain", ("p",))
    builder.commit_rebuild(_rows(range(4)))
    builder.commit_append(_rows([4]))
    builder.commit_append(_rows([5]))
    return builder


def _rows(numbers):
    return pa.table({"p": pa.array(numbers, pa.int64()), "a": pa.array(numbers, pa.int64())})


def _entries(store):
    return [entry.datasets["plain"] for entry, _ in read_entries(store, PLAIN, 0)]


def _formats(store):
    found = [json.loads((store.root / PLAIN.entry_key(n + 1)).read_bytes())["format"]
             for n in range(resolve(store, PLAIN).version)]  # fmt: skip
    return found


def test_commits_write_what_changed(store, grown):
    first, second, third = _entries(store)
    assert (first.base, second.base, third.base) == ("", first.snapshot, first.snapshot)
    written = pq.ParquetFile(store.root / third.snapshot).read()
    assert written["position"].to_pylist() == [4, 5]
    snapshot = resolve(store, PLAIN).snapshot("plain")
    assert snapshot.files["partition.p"].to_pylist() == list(range(6))
    assert snapshot.files["position"].to_pylist() == list(range(6))
    assert snapshot.rows == 6
    # Only entries that need it have the newer format; the next whole snapshot ends that.
    assert _formats(store) == [2, 3, 3]
    grown.commit_append(_rows([6]))
    assert _entries(store)[-1].base == ""
    assert _formats(store) == [2, 3, 3, 2]
    assert resolve(store, PLAIN).snapshot("plain").rows == 7


def test_small_datasets_are_written_whole(store):
    builder = Builder(store, "plain", ("p",))
    builder.commit_rebuild(_rows(range(4)))
    builder.commit_append(_rows([4]))
    assert [entry.base for entry in _entries(store)] == ["", ""]
    assert _formats(store) == [2, 2]


def test_every_version_can_be_read(store, grown):
    rows = [read_snapshot(store, e.snapshot, e.snapshot_sha256).rows for e in _entries(store)]
    assert rows == [4, 5, 6]
    assert not list(check_log(resolve(store, PLAIN), deep=True))


def test_a_cleanup_keeps_what_others_build_on(store, grown):
    first, _, third = _entries(store)
    run_cleanup(store, PLAIN, NOTHING)
    left = {key for key in keys(store, PLAIN.folder) if "/snapshots/" in key}
    assert left == {first.snapshot, third.snapshot}
    assert resolve(store, PLAIN).snapshot("plain").rows == 6
    assert plan_cleanup(store, PLAIN, NOTHING).is_empty
    grown.commit_rebuild(_rows(range(2)))
    run_cleanup(store, PLAIN, NOTHING)
    assert not left & keys(store)


def test_a_cleanup_must_not_give_up_what_a_winner_builds_on(store, grown):
    (*_, (newest, _)) = read_entries(store, PLAIN, 0)
    base = newest.datasets["plain"].base
    with pytest.raises(CommitConflictError, match=base):
        check_needed(newest, [base])


def test_readers_of_a_base_learn_that_their_version_is_gone(store, grown):
    """Its snapshot stays for others, its data files do not."""
    grown.commit_rebuild(_rows(range(4)))
    old = resolve(store, PLAIN)
    (key,) = {*old.snapshot("plain").files["key"].to_pylist()[:1]}

    def replaced(base, attempt):
        files = base.files.filter(pa.array([n > 0 for n in range(base.files.num_rows)]))
        return base.with_files(files)

    change = grown.append(_rows([9]), "0" * 32)
    object.__setattr__(change, "operation", "replace")
    object.__setattr__(change, "rebase", replaced)
    commit_change(store, lambda c: change)
    assert _entries(store)[-1].base == old.datasets["plain"].entry.snapshot
    run_cleanup(store, PLAIN, NOTHING)
    assert not store.exists(key)
    with pytest.raises(VersionGoneError), old.reading():
        store.get(key)
    with pytest.raises(VersionGoneError, match="removed files of plain of version"):
        tag_version(store, "plain", "late", old.version)


def test_what_was_removed_is_brought_back(store, grown):
    remove(store, "plain")
    undrop(store, "plain")
    assert resolve(store, PLAIN).datasets["plain"].entry.base == ""
    assert resolve(store, PLAIN).snapshot("plain").rows == 6


@pytest.mark.parametrize("name", ["snapshot", "base"])
def test_damage_is_one_error_that_names_the_file(store, grown, name):
    key = getattr(_entries(store)[-1], name)
    data = (store.root / key).read_bytes()
    for place in range(0, len(data), 97):
        flipped = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        (store.root / key).write_bytes(flipped)
        with pytest.raises(FormatError, match=key):
            resolve(store, PLAIN).snapshot("plain")


def test_a_base_must_be_a_whole_snapshot_of_the_dataset(store, grown):
    _, second, third = _entries(store)
    with pytest.raises(FormatError, match="no whole snapshot of its dataset"):
        _exchange_base(store, third.snapshot, second.snapshot, second.snapshot_sha256)
    with pytest.raises(FormatError, match="which base"):
        _exchange_base(store, third.snapshot, second.snapshot, "")


def _exchange_base(store, key, base, sha256):
    table = pq.ParquetFile(store.root / key).read()
    document = json.loads(table.schema.metadata[b"ktk"])
    document["base"] = {"key": base, "sha256": sha256}
    pq.write_table(table.replace_schema_metadata({"ktk": json.dumps(document)}), store.root / key)
    read_snapshot(store, key)


def test_older_versions_ask_for_an_upgrade(store, grown, monkeypatch):
    key = _entries(store)[-1].snapshot
    monkeypatch.setattr(snapshot_module, "_DELTA_FORMAT", 1)
    with pytest.raises(FormatError, match="Upgrade ktk-engine"):
        read_snapshot(store, key)
    monkeypatch.setattr(entry_module, "_FORMATS", (1, 2))
    with pytest.raises(FormatError, match="Upgrade ktk-engine"):
        resolve(store, PLAIN)
