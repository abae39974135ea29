"""Snapshots of large datasets are stored in segments, and read as whole ones are."""

from __future__ import annotations

import datetime
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from threading import Barrier

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktk_engine import Store
from ktk_engine.conditions.condition import And, Comparison, IsIn, IsNull, Not, Or
from ktk_engine.errors import CommitConflictError, FormatError, VersionGoneError
from ktk_engine.maintain import cleanup  # deep: a clean-up that was planned before
from ktk_engine.maintain.check_log import check_log  # deep: finds lost segments
from ktk_engine.snapshot import store_segments
from ktk_engine.snapshot.file_segments import SegmentedFiles
from ktk_engine.snapshot.snapshot import (
    Snapshot,
    changed_files,
    concat_files,
    files_table,
)
from ktk_engine.snapshot.stored_snapshot import read_snapshot, write_snapshot
from tests.support.changes import (
    DatasetChange,
    Retention,
    StagedStore,
    compact,
    find_compactions,
    plan_cleanup,
    publish_stages,
    remove,
    run_cleanup,
    tag_version,
    undrop,
)
from tests.support.committed import LogScope, check, read_entries, resolve
from tests.support.dataset_builder import DbtNode, commit_change
from tests.support.stores import LocalStore, keys

PLAIN = LogScope("dataset", "plain")
NOTHING = Retention(timedelta(0), 1)
SCHEMA = pa.schema([("p", pa.int64()), ("a", pa.int64())])


def _bounds(patch, whole=2, segment=4, tier=2):
    patch.setattr(store_segments, "_MOST_WHOLE", whole)
    patch.setattr(store_segments, "_SEGMENT", segment)
    patch.setattr(store_segments, "_TIER", tier)


@pytest.fixture
def tiny(monkeypatch):
    """Bounds by which every tier, merge and cut happens with few files."""
    _bounds(monkeypatch)


def _files(numbers, columns=("min.a",), name="x"):
    labels = [f"p={number % 5}/{name}{number}" for number in numbers]
    partitions = pa.table({"p": pa.array([number % 5 for number in numbers], pa.int64())})
    bounds = pa.table({name: pa.array(numbers, pa.int64()) for name in columns})
    return files_table(labels, labels, partitions, {"rows": list(numbers)}, bounds)


class _Kept:
    """Writes snapshots one after the other, and reads each again."""

    def __init__(self, store):
        self.store, self.written, self.count = store, [], 0

    def __call__(self, snapshot):
        self.count += 1
        stored, sha256, keys = write_snapshot(
            self.store, lambda number: f"s/{self.count}-{number}.parquet", snapshot
        )
        self.written.append(keys)
        read = read_snapshot(self.store, keys[0], sha256)
        assert str(stored.files.to_pylist()) == str(read.files.to_pylist())  # NaN is NaN
        assert stored.next_file == read.next_file
        return read_snapshot(self.store, keys[0], sha256)


_CHANGES = st.lists(
    st.tuples(
        st.integers(0, 5),  # files that come
        st.sets(st.integers(0, 30), max_size=6),  # places of files that go
        st.sampled_from([("min.a",), ("min.a", "min.b"), ()]),
    ),
    min_size=1,
    max_size=8,
)


@settings(deadline=None, max_examples=60)
@given(_CHANGES, st.integers(0, 3), st.integers(1, 6), st.integers(2, 3), st.data())
def test_reads_as_a_whole_table_does(tmp_path_factory, changes, whole, segment, tier, data):
    store = _Kept(LocalStore(tmp_path_factory.mktemp("s")))
    snapshot = Snapshot("d", SCHEMA, ("p",), _files([]).slice(0, 0))
    plain, number = snapshot.files, 0
    schema = pa.schema([*SCHEMA, ("b", pa.int64())])
    with pytest.MonkeyPatch.context() as patch:
        _bounds(patch, whole, segment, tier)
        for added, places, columns in changes:
            came = _files(range(number, number + added), columns)
            numbers = pa.array(range(number, number + added), pa.int64())
            gone = plain.filter(pa.array([n in places for n in range(len(plain))], pa.bool_()))
            before = snapshot
            snapshot = store(snapshot.changed(gone, came, schema=schema))
            stays = pc.invert(pc.is_in(plain["label"], value_set=gone["label"].combine_chunks()))
            plain = concat_files([plain.filter(stays), came.set_column(0, "position", numbers)])
            number += added
            names = snapshot.file_table.column_names
            assert set(names) == set(plain.column_names)
            plain = plain.select(names)
            assert snapshot.files.equals(plain)
            assert isinstance(snapshot.file_table, SegmentedFiles) == (len(plain) > whole)
            assert snapshot.file_table.num_rows == len(plain)
            assert snapshot.rows == (pc.sum(plain["rows"]).as_py() or 0)
            lost, found = changed_files(before, snapshot)
            assert sorted(lost["label"].to_pylist()) == sorted(gone["label"].to_pylist())
            assert found["label"].to_pylist() == came["label"].to_pylist()
            _check_narrowed(snapshot, plain, data.draw(st.sets(st.integers(0, 4))))
    mask = data.draw(st.lists(st.booleans(), min_size=len(plain), max_size=len(plain)))
    mask = pa.array(mask, pa.bool_())
    fresh = replace(snapshot).file_table
    chosen = data.draw(st.lists(st.sampled_from(names), unique=True))
    if isinstance(fresh, SegmentedFiles):
        again = SegmentedFiles(fresh.listed, fresh.schema, fresh.reader)
        assert again.some(mask, names).equals(plain.filter(mask))
        assert not chosen or fresh.some(mask, chosen).equals(plain.select(chosen).filter(mask))
    assert fresh.select(chosen).equals(plain.select(chosen))
    assert fresh.select(chosen).num_rows == plain.num_rows
    assert len(set(snapshot.segments)) == len(snapshot.segments)


def _check_narrowed(snapshot, plain, wanted):
    """What is narrowed has all files that fulfil a condition, and no other file than the whole."""
    values = pa.array(sorted(wanted), pa.int64())
    found = snapshot.narrowed([IsIn("p", values)])
    right = plain.filter(pc.is_in(plain["partition.p"], value_set=values))
    assert set(right["label"].to_pylist()) <= set(found.labels) <= set(plain["label"].to_pylist())
    to = snapshot.narrowed_to(right.select(["partition.p"]))
    assert set(right["label"].to_pylist()) <= set(to.labels)


_ZONED = pa.timestamp("us", "UTC")
_MOMENT = datetime.datetime(2020, 5, 1, tzinfo=datetime.UTC)
_VALUES = [
    (pa.bool_(), [True, False, None]),
    (pa.string(), ["", "a", "ä/%", "\U0010ffff", None]),
    (pa.binary(), [b"", b"\xff", None]),
    (pa.int64(), [-(2**63), -1, 2**63 - 1, None]),
    (pa.uint64(), [0, 2**64 - 1, None]),
    (pa.float64(), [float("nan"), -0.0, 0.0, float("inf"), 1.5, None]),
    (pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
    (_ZONED, [_MOMENT, None]),
    (pa.timestamp("us"), [_MOMENT.replace(tzinfo=None), None]),
    (pa.decimal128(38, 2), [Decimal("1.10"), Decimal("-7"), None]),
]


@pytest.mark.parametrize(("kind", "values"), _VALUES, ids=str)
def test_partitions_of_every_class(tmp_path, tiny, kind, values):
    """Bounds of segments are stored, and what has an unknown value is never left out."""
    store = _Kept(LocalStore(tmp_path))
    schema = pa.schema([("p", kind), ("a", pa.int64())])
    typed = pa.array(values * 2, kind)
    labels = [f"p=?/{number}" for number in range(len(typed))]
    rows = {"rows": [1] * len(typed), "bytes": [1] * len(typed)}
    files = files_table(labels, labels, pa.table({"p": typed}), rows)
    nothing = files.slice(0, 0)
    snapshot = Snapshot("d", schema, ("p",), nothing, properties={"null_folders": True})
    for number in range(len(typed)):  # each alone, so that bounds differ and tiers merge
        snapshot = store(snapshot.changed(nothing, files.slice(number, 1)))
    assert snapshot.segments
    everything = snapshot.files
    for value in typed:
        if not value.is_valid:
            wanted = [IsNull("p")]
        elif kind == pa.float64() and np.isnan(value.as_py()):
            wanted = [Not(IsNull("p"))]
        else:
            wanted = [Comparison("p", "=", value)]
        found = snapshot.narrowed(wanted)
        same = (
            pc.equal(everything["partition.p"], value)
            if value.is_valid
            else pc.is_null(everything["partition.p"])
        )
        right = set(everything.filter(pc.fill_null(same, False))["label"].to_pylist())
        assert right <= set(found.labels)
        gone = everything.filter(pc.fill_null(same, False))
        after = store(snapshot.changed(gone, nothing))
        assert set(after.labels) == set(everything["label"].to_pylist()) - right


def test_narrowing_reads_what_may_match(tmp_path, monkeypatch):
    _bounds(monkeypatch, whole=2, segment=4, tier=8)
    store = _Kept(LocalStore(tmp_path))
    snapshot = store(Snapshot("d", SCHEMA, ("p",), _files(range(20))))
    assert len(snapshot.segments) == 5
    three = pa.scalar(3, pa.int64())
    found = snapshot.narrowed([Comparison("p", "=", three), IsNull("a")])
    assert len(found.segments) == 1
    assert not snapshot.file_table.reader.tables
    assert len(found.files.filter(pc.equal(found.files["partition.p"], 3))) == 4
    assert set(snapshot.file_table.reader.tables) == set(found.segments)
    mixed = Or((Comparison("p", "=", three), IsNull("a")))
    assert snapshot.narrowed([mixed]) is snapshot
    nothing = And((Comparison("p", "<", three), Comparison("p", ">", three)))
    assert len(snapshot.narrowed([nothing]).segments) <= 1


def test_a_commit_writes_what_it_adds(tmp_path, monkeypatch):
    _bounds(monkeypatch, whole=2, segment=1000, tier=8)
    store = _Kept(LocalStore(tmp_path))
    nothing = _files([])
    snapshot = store(Snapshot("d", SCHEMA, ("p",), _files(range(900))))
    for number in range(900, 940):
        snapshot = store(snapshot.changed(nothing, _files([number])))
    sizes = [sum((store.store.root / key).stat().st_size for key in keys) for keys in store.written]
    assert max(sizes[1:]) < sizes[0]
    assert max(map(len, store.written)) == 2
    assert len(snapshot.segments) < 16
    # What is removed is marked, and nothing but the root is written.
    snapshot = store(snapshot.changed(_files([3]).set_column(0, "position", [[3]]), nothing))
    assert len(store.written[-1]) == 1
    assert len(snapshot.labels) == 939


def test_bounds_of_a_column_that_left_do_not_come_back(tmp_path, tiny):
    store = _Kept(LocalStore(tmp_path))
    snapshot = store(Snapshot("d", SCHEMA, ("p",), _files(range(9))))
    nothing = _files([], ())
    without = store(snapshot.changed(nothing, nothing, schema=SCHEMA.remove(1)))
    assert "min.a" not in without.file_table.column_names
    again = store(without.changed(nothing, _files([9]), schema=SCHEMA))
    assert again.files["min.a"].to_pylist() == [None] * 9 + [9]
    other = pa.table({"min.a": pa.array(["z"])})
    text = files_table(["p=1/t"], ["p=1/t"], pa.table({"p": [1]}), {"rows": [1]}, other)
    changed = without.changed(nothing, text, schema=SCHEMA.set(1, pa.field("a", pa.string())))
    assert store(changed).files["min.a"].to_pylist() == [None] * 9 + ["z"]


@pytest.fixture
def grown(store, tiny):
    """Four files, then one more, then another."""
    builder = DbtNode(store, "plain", ("p",))
    builder.commit_rebuild(_rows(range(4)))
    builder.commit_append(_rows([4]))
    builder.commit_append(_rows([5]))
    return builder


def _rows(numbers):
    return pa.table({"p": pa.array(numbers, pa.int64()), "a": pa.array(numbers, pa.int64())})


def _entries(store):
    return [entry.datasets["plain"] for entry, _ in read_entries(store, PLAIN, 0)]


def _stored(store):
    return {key for key in keys(store, PLAIN.folder) if "/snapshots/" in key}


def test_large_tables_of_files_are_in_segments(store, grown):
    snapshot = resolve(store, PLAIN).snapshot("plain")
    assert snapshot.files["partition.p"].to_pylist() == list(range(6))
    assert snapshot.files["position"].to_pylist() == list(range(6))
    assert snapshot.rows == 6
    grown.commit_rebuild(_rows([1, 2]))
    assert resolve(store, PLAIN).snapshot("plain").rows == 2
    assert _entries(store)[-1].segments == 0


def test_small_datasets_are_written_whole(store):
    builder = DbtNode(store, "plain", ("p",))
    builder.commit_rebuild(_rows(range(4)))
    builder.commit_append(_rows([4]))
    assert [entry.segments for entry in _entries(store)] == [0, 0]


def test_every_version_can_be_read(store, grown):
    rows = [read_snapshot(store, e.snapshot, e.snapshot_sha256).rows for e in _entries(store)]
    assert rows == [4, 5, 6]
    assert not list(check_log(resolve(store, PLAIN), deep=True))


def test_a_cleanup_keeps_the_segments_of_what_it_keeps(store, grown):
    run_cleanup(store, PLAIN, NOTHING)
    newest = _entries(store)[-1]
    segments = set(resolve(store, PLAIN).snapshot("plain").segments)
    assert _stored(store) == {newest.snapshot, *segments}
    assert resolve(store, PLAIN).snapshot("plain").rows == 6
    assert plan_cleanup(store, PLAIN, NOTHING).is_empty
    grown.commit_rebuild(_rows(range(2)))
    run_cleanup(store, PLAIN, NOTHING)
    assert not segments & keys(store)


def test_a_cleanup_reads_what_versions_share_once(store, grown, monkeypatch):
    for number in range(6, 20):
        grown.commit_append(_rows([number]))
    read, get = Counter(), type(store).get

    def count(self, key):
        read[key] += 1
        return get(self, key)

    monkeypatch.setattr(type(store), "get", count)
    everything = Retention(timedelta(days=1), 100)
    assert plan_cleanup(store, PLAIN, everything).is_empty
    segments = {key for item in resolve(store, PLAIN).snapshots().values() for key in item.segments}
    assert len(segments) > 3
    assert {read[key] for key in segments} == {1}


def test_a_cleanup_does_not_take_what_was_brought_back_meanwhile(store, grown, monkeypatch):
    """A writer that restores an old version names old segments, which nothing has named since."""
    old = resolve(store, PLAIN).snapshot("plain")
    grown.commit_rebuild(_rows(range(3)))
    planned = plan_cleanup(store, PLAIN, NOTHING)
    assert set(old.segments) <= {info.key for info in planned.objects}
    commit_change(store, lambda c: DatasetChange("plain", "restore", lambda base, attempt: old))
    monkeypatch.setattr(cleanup, "plan_cleanup", lambda *_: planned)
    with pytest.raises(CommitConflictError, match="going to delete"):
        run_cleanup(store, PLAIN, NOTHING)
    assert resolve(store, PLAIN).snapshot("plain").rows == 6


def test_readers_learn_that_their_version_is_gone(store, grown):
    old = resolve(store, PLAIN)
    unread = old.snapshot("plain")
    grown.commit_rebuild(_rows(range(4)))
    run_cleanup(store, PLAIN, NOTHING)
    with pytest.raises(VersionGoneError), old.reading():
        _ = unread.files
    with pytest.raises(VersionGoneError):
        tag_version(store, "plain", "late", old.version)


def test_what_was_removed_is_brought_back(store, grown):
    remove(store, "plain")
    undrop(store, "plain")
    assert resolve(store, PLAIN).snapshot("plain").rows == 6
    assert not list(check_log(resolve(store, PLAIN), deep=True))


def test_damage_is_one_error_that_names_the_file(store, grown):
    snapshot = resolve(store, PLAIN).snapshot("plain")
    for key in (_entries(store)[-1].snapshot, snapshot.segments[0]):
        data = (store.root / key).read_bytes()
        for place in range(0, len(data), 97):
            flipped = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
            (store.root / key).write_bytes(flipped)
            with pytest.raises(FormatError, match=key):
                _ = resolve(store, PLAIN).snapshot("plain").files
            (problem,) = check(store, "plain").problems
            assert key in str(problem.reason)
        (store.root / key).write_bytes(data)


def test_what_is_listed_twice_or_wrong_is_found(store, grown):
    files = resolve(store, PLAIN).snapshot("plain").file_table
    twice = pa.concat_tables([files.listed, files.listed.slice(0, 1)])
    with pytest.raises(FormatError, match="list a file twice"):
        SegmentedFiles(twice, files.schema, files.reader).verify()
    place = files.listed.schema.get_field_index("rows")
    wrong = files.listed.set_column(place, "rows", pa.array([7] * len(files.keys), pa.int64()))
    with pytest.raises(FormatError, match="lists 21 rows, its segments have 6"):
        SegmentedFiles(wrong, files.schema, files.reader).verify()
    (store.root / files.keys[0]).unlink()
    (problem,) = check(store, "plain").problems
    assert "missing" in str(problem.reason)
    assert files.keys[0] in str(problem.reason)


def test_a_lost_slot_leaves_no_segment(store, grown):
    base = resolve(store, PLAIN)
    grown.commit_append(_rows([6]))
    grown.commit_append(_rows([7]), base)
    known = set()
    for item in _entries(store):
        known.add(item.snapshot)
        known.update(read_snapshot(store, item.snapshot, item.snapshot_sha256).segments)
    assert _stored(store) == known
    assert sorted(resolve(store, PLAIN).snapshot("plain").files["partition.p"].to_pylist()) == [
        *range(8)
    ]


def test_compacting_lists_the_files_anew(store, grown, monkeypatch):
    monkeypatch.setattr(store_segments, "_TIER", 100)
    for number in range(6, 12):
        grown.commit_append(_rows([number]))
    (found,) = find_compactions(store, "plain")
    assert found.scattered
    assert str(found) == "the list of files"
    before = resolve(store, PLAIN).snapshot("plain")
    compact(found)
    after = resolve(store, PLAIN).snapshot("plain")
    assert len(after.segments) == 3 < len(before.segments)
    assert after.files.equals(before.files)
    (found,) = find_compactions(store, "plain")
    assert not found.is_needed
    narrow = after.narrowed([Comparison("p", "=", pa.scalar(4, pa.int64()))])
    assert len(narrow.segments) == 1


def test_what_users_write_adds_to_the_segments_that_are_there(store, tiny, monkeypatch):
    """Whatever a write says besides its files: indexes, notes, comments."""
    monkeypatch.setattr(store_segments, "_TIER", 100)
    opened = Store(str(store.root))
    opened.write_table("plain", _rows(range(8)), partition_by=["p"], indexes=["a"])
    listed = [set(resolve(store, PLAIN).snapshot("plain").segments)]
    for number in range(8, 12):
        opened.write_table("plain", _rows([number]), metadata={"number": number})
        listed.append(set(resolve(store, PLAIN).snapshot("plain").segments))
    opened.table("plain").delete("p = 3")
    listed.append(set(resolve(store, PLAIN).snapshot("plain").segments))
    opened.table("plain").drop_index("a")
    listed.append(set(resolve(store, PLAIN).snapshot("plain").segments))
    for before, after in pairwise(listed):
        assert len(before - after) <= 1
        assert len(after - before) <= 1
    assert listed[0] <= listed[4]
    assert opened.table("plain").query().count() == 11
    assert not check(store, "plain").problems


def test_a_stage_brings_back_what_it_has_dropped(store, grown):
    stage = StagedStore(store)
    grown_in_stage = DbtNode(stage, "plain", ("p",))
    grown_in_stage.commit_append(_rows([9]))
    remove(stage, "plain")
    undrop(stage, "plain")
    publish_stages([stage])
    assert resolve(store, PLAIN).snapshot("plain").rows == 7
    assert len(resolve(store, PLAIN).snapshot("plain").files) == 7
    assert not check(store, "plain").problems


class _FarStore(LocalStore):
    """Answers for segments only when several are asked for at the same time."""

    together = 4

    @property
    def is_remote(self):
        return True

    def get(self, key):
        if key.startswith("s/") and not key.endswith("-0.parquet"):
            self.barrier.wait(timeout=30)
        return super().get(key)


def test_segments_of_a_remote_store_are_read_at_the_same_time(tmp_path, tiny):
    store = _FarStore(tmp_path)
    store.barrier = Barrier(_FarStore.together)
    files = _files(range(16))
    _, sha256, keys = write_snapshot(
        store, lambda number: f"s/1-{number}.parquet", Snapshot("d", SCHEMA, ("p",), files)
    )
    assert len(keys) == 1 + _FarStore.together

    def read():
        return read_snapshot(store, keys[0], sha256)

    assert read().files.num_rows == 16
    some = pa.array([number % 3 == 0 for number in range(16)])
    assert read().file_table.some(some, ["label"]).num_rows == 6
    wanted = {*files["key"].to_pylist()[:3]}
    assert set() < read().named_among({*wanted, "other"}) <= wanted
