"""Datasets whose indexes are segments, through all that happens to them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.files import index_runs  # deep: how many pairs wait
from ktk_engine.maintain.check_files import check_files  # deep: of a changed snapshot
from ktk_engine.report import health  # deep: from how many segments on it says so
from tests.support.changes import (
    Retention,
    StagedStore,
    WriteRequest,
    build,
    change_indexes,
    compact,
    find_compactions,
    publish_stages,
    run_cleanup,
    undrop,
)
from tests.support.committed import check, describe, resolve, scope_of, snapshot_of
from tests.support.documents import load_document, stored_index
from tests.support.queries import make_report
from tests.support.stores import keys
from tests.support.tiny_bounds import set_tiny_bounds, tiny_indices

TABLE = WriteRequest("t", partition_by=("p",), indexes=("a",))


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    set_tiny_bounds(monkeypatch)
    with tiny_indices():
        yield


def rows(*values, p="x"):
    return pa.table({"p": [p] * len(values), "a": pa.array(values, pa.int64())})


def append(store, *values, p="x"):
    return build(store, rows(*values, p=p), TABLE, mode="append")


def found(store, where, name="t", version=None):
    """Rows that a query finds, and how many files its index has left over."""
    table = Store.of(store).table(name, version=version)
    return sorted(table.query(where=where).to_arrow()["a"].to_pylist())


def segments(store, uuid="t", column="a"):
    return snapshot_of(store, uuid).index_segments[column]


def segment_keys(store):
    return {key for key in keys(store) if "/segments/" in key}


def test_an_append_writes_its_own_pairs_and_reads_no_others(store):
    build(store, rows(*range(6)), TABLE)
    first = segments(store)
    for item in first:
        store.delete([item.key])  # nobody reads it
    append(store, 100)
    assert set(first) < set(segments(store))
    assert found(store, "a = 100") == [100]


def test_an_index_file_becomes_segments_once_it_is_large(store):
    with tiny_indices(INDEX_FILE_BYTES=10**6, REPORTED_PAIRS=10**6):
        build(store, rows(1, 2, 3), TABLE)
        append(store, 4, p="y")
        assert list(snapshot_of(store, "t").indices) == ["a"]
    build(store, rows(9, p="y"), TABLE, mode="partitions")
    snapshot = snapshot_of(store, "t")
    assert (dict(snapshot.indices), list(snapshot.index_segments)) == ({}, ["a"])
    assert sum(item.pairs for item in segments(store)) == 4
    assert found(store, "a > 2") == [3, 9]
    assert check(store, "t", deep=True).problems == ()


def test_files_that_are_gone_are_not_found(store):
    build(store, rows(1, 2), TABLE)
    append(store, 2, 3, p="y")
    build(store, rows(7, p="x"), TABLE, mode="partitions")
    assert found(store, "a = 2") == [2]
    assert found(store, "a = 1") == []
    assert check(store, "t", deep=True).problems == ()


def test_every_version_has_its_own_segments(store):
    build(store, rows(1), TABLE)
    for value in range(2, 12):
        append(store, value, p="y" if value % 2 else "x")
    build(store, rows(50, p="y"), TABLE, mode="partitions")
    table = Store.of(store).table("t")
    for version in range(1, 12):
        assert found(store, f"a = {version}", version=version) == [version]
        assert found(store, f"a = {version + 1}", version=version) == []
    table.restore(version=5)
    assert found(store, "a >= 4") == [4, 5]
    append(store, 60)
    assert found(store, "a in (5, 60)") == [5, 60]
    assert check(store, "t", deep=True).problems == ()


def test_compaction_merges_all_and_drops_what_is_gone(store):
    build(store, rows(1, 1, 2), TABLE)
    for value in range(12):
        append(store, value, value + 1)
    append(store, 90, p="y")
    build(store, rows(91, p="y"), TABLE, mode="partitions")
    before = found(store, "a >= 0")
    (needed,) = find_compactions(store, "t")
    assert needed.indices == ("a",)
    compact(needed)
    assert found(store, "a >= 0") == before
    for value in set(before):
        assert found(store, f"a = {value}") == [item for item in before if item == value]
    assert check(store, "t", deep=True).problems == ()
    # The new files have one segment of their own, which the next call merges without any file.
    for _ in range(2):
        (again,) = find_compactions(store, "t")
        if again.is_needed:
            assert not again.files.num_rows
            compact(again)
    assert not find_compactions(store, "t")[0].is_needed
    living = sum(item.pairs for item in segments(store))
    assert living == len({(value, value == 91) for value in before})
    lows = [item.low.as_py() for item in segments(store)]
    assert len(lows) == len(set(lows))


def test_a_clean_up_keeps_what_is_needed_and_no_more(store):
    build(store, rows(1), TABLE)
    for value in range(2, 20):
        append(store, value)
    run_cleanup(store, scope_of("t"), Retention(timedelta(0), 1))
    needed = {item.key for item in segments(store)}
    assert segment_keys(store) == needed
    assert found(store, "a > 0") == list(range(1, 20))
    assert check(store, "t").problems == ()


def test_a_failed_write_leaves_no_segment(store):
    build(store, rows(1), TABLE)
    before = keys(store)

    def stop(method, key):
        if "/snapshots/" in key and "/segments/" not in key:
            raise KeyboardInterrupt

    store.hooks.append(stop)
    with pytest.raises(KeyboardInterrupt):
        append(store, 2, 3, 4, 5, 6)
    store.hooks.remove(stop)
    assert keys(store) == before


def test_other_commits_come_first(store):
    """Three writers: each one's segment counts from where the others' files end."""
    build(store, rows(1), TABLE)
    state = resolve(store, scope_of("t"))
    for turn in range(3):
        build(store, rows(10 + turn, 20 + turn), TABLE, mode="append", state=state)
    assert [found(store, f"a = {v}") for v in (10, 21, 12, 22)] == [[10], [21], [12], [22]]
    assert check(store, "t", deep=True).problems == ()


def test_an_index_is_added_beside_commits(store):
    plain = WriteRequest("t", partition_by=("p",))
    build(store, rows(1, 2, 3, 4), plain)
    build(store, rows(5, p="y"), plain, mode="append")

    def hook(method, key):
        if "/snapshots/" in key and hook in store.hooks:
            store.hooks.remove(hook)
            build(store, rows(6, p="x"), plain, mode="partitions")
            build(store, rows(7, p="z"), plain, mode="append")

    store.hooks.append(hook)
    change_indexes(store, "t", ["a"])
    assert snapshot_of(store, "t").with_index == ("a",)
    assert found(store, "a >= 5") == [5, 6, 7]
    assert check(store, "t", deep=True).problems == ()
    change_indexes(store, "t", ["a"], drop=True)
    assert snapshot_of(store, "t").with_index == ()


def test_copies_and_other_names_keep_them(store, tmp_path):
    build(store, rows(1, 2, 3, 4, 5), TABLE)
    append(store, 6, p="y")
    build(store, rows(8, p="x"), TABLE, mode="partitions")
    table = Store.of(store).table("t")
    table.copy_to(Store(tmp_path / "other"), "u")
    other = Store(tmp_path / "other")._store
    assert found(other, "a > 5", "u") == [6, 8]
    assert check(other, "u", deep=True).problems == ()
    Store.of(store).table("t").rename("r")
    assert found(store, "a > 5", "r") == [6, 8]
    assert check(store, "r", deep=True).problems == ()


def test_they_come_back_with_a_dropped_dataset(store):
    build(store, rows(1, 2, 3, 4, 5), TABLE)
    Store.of(store).drop("t")
    undrop(store, "t")
    assert found(store, "a = 4") == [4]


def test_other_programs_see_an_index_file(store):
    build(store, rows(1, 2, 2), TABLE)
    append(store, 2, 3, p="y")
    build(store, rows(9, p="x"), TABLE, mode="partitions")
    snapshot = snapshot_of(store, "t")
    document = load_document(store, "t")
    pairs = stored_index(store, document.indices["a"]).to_pylist()
    labels = {label: number for number, label in enumerate(snapshot.labels)}
    named = sorted((pair["value"], labels[pair["label"]]) for pair in pairs)
    assert named == [(2, 0), (3, 0), (9, 1)]
    run_cleanup(store, scope_of("t"), Retention(timedelta(0), 1))
    assert store.exists(document.indices["a"])
    assert len([key for key in keys(store) if "/indices/" in key]) == 1


def test_a_check_finds_damage_and_what_is_missing(store):
    build(store, rows(*range(12)), TABLE)
    snapshot = snapshot_of(store, "t")
    first = segments(store)[0]
    short = {"a": segments(store)[1:]}
    (problem,) = check_files(store, "t", replace(snapshot, index_segments=short), deep=True)
    assert "does not list all values of 1 file" in problem.reason
    data = store.get(first.key)
    store.put(first.key, data[:40] + bytes([data[40] ^ 1]) + data[41:])
    assert "damaged" in check(store, "t").problems[0].reason
    store.delete([first.key])
    assert [item.reason for item in check(store, "t").problems] == ["the file is missing"]


def test_many_pairs_of_one_file_never_wait_in_memory(store, monkeypatch):
    most = []
    real = index_runs.IndexRuns.add

    def add(self, *pairs):
        real(self, *pairs)
        most.append(self.waiting_pairs)

    monkeypatch.setattr(index_runs.IndexRuns, "add", add)
    target = WriteRequest("t", partition_by=("p",), indexes=("a",), row_group_rows=4)
    build(store, rows(*range(100)), target)
    assert max(most) < 14
    assert found(store, "a in (0, 57, 99)") == [0, 57, 99]
    assert check(store, "t", deep=True).problems == ()


def test_rows_without_a_value_leave_it_as_it_is(store):
    build(store, rows(1, 2, 3, 4, 5), TABLE)
    before = segments(store)
    append(store, None, p="z")
    assert segments(store) == before
    assert check(store, "t", deep=True).problems == ()


def test_a_staged_run_writes_segments_at_once(store):
    build(store, rows(1), TABLE)
    stage = StagedStore(store)
    for value in range(2, 9):
        append(stage, value)
    assert found(stage, "a > 1") == list(range(2, 9))
    assert found(store, "a > 1") == []
    append(store, 100, p="y")
    publish_stages([stage])
    assert found(store, "a > 1") == [*range(2, 9), 100]
    assert check(store, "t", deep=True).problems == ()
    run_cleanup(store, scope_of("t"), Retention(timedelta(0), 1))
    assert found(store, "a > 1") == [*range(2, 9), 100]


def test_what_is_said_of_segments(store, monkeypatch):
    build(store, rows(1), TABLE)
    for value in range(2, 12):
        append(store, value)
    (described,) = describe(store, "t").datasets
    assert described.segments == {"a": {"segments": len(segments(store)), "pairs": 11}}
    monkeypatch.setattr(health, "MANY_SEGMENTS", 1)
    said = [item.what for item in make_report(store, "t").remarks]
    assert any("the index on a has" in what for what in said)
    (index,) = make_report(store, "t").indices
    assert (index.values, index.mean, index.largest) == (11, 1, 1)


def meanwhile(store, action):
    """Let something happen while a commit writes its snapshot."""

    def hook(method, key):
        if "/snapshots/" in key and hook in store.hooks:
            store.hooks.remove(hook)
            action()

    store.hooks.append(hook)


def only_indices(store):
    """A compaction that merges the index, whatever files there are."""
    (needed,) = find_compactions(store, "t")
    return replace(needed, files=needed.files.slice(0, 0))


def test_a_merge_goes_on_top_of_rows_that_came_meanwhile(store):
    build(store, rows(*range(10)), TABLE)
    for value in range(10, 16):
        append(store, value)
    meanwhile(store, lambda: append(store, 50, p="y"))
    compact(only_indices(store))
    assert found(store, "a in (3, 15, 50)") == [3, 15, 50]
    assert check(store, "t", deep=True).problems == ()
    assert sum(item.pairs for item in segments(store)) == 17


def test_a_merge_gives_way_where_files_have_come_back(store):
    """Pairs of files that were gone when it read are not in what it has written."""
    build(store, rows(*range(10)), TABLE)
    append(store, 20, p="y")
    build(store, rows(30, p="x"), TABLE, mode="partitions")
    table = Store.of(store).table("t")
    meanwhile(store, lambda: table.restore(version=2))
    compact(only_indices(store))
    assert found(store, "a >= 0") == [*range(10), 20]
    assert [found(store, f"a = {value}") for value in (0, 9, 20)] == [[0], [9], [20]]
    assert check(store, "t", deep=True).problems == ()
