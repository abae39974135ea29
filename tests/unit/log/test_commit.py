import threading

import pyarrow as pa
import pytest

from ktk_engine.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    ConsistencyError,
    StoreError,
)
from ktk_engine.log.chain import read_entries
from ktk_engine.log.change import conflict as conflicts
from ktk_engine.log.change.change_set import ChangeSet, DatasetChange
from ktk_engine.log.entry import parse_entry
from ktk_engine.log.pending_commit import PendingCommit
from ktk_engine.log.scope import LogScope, new_commit_id, scope_of
from ktk_engine.log.state import resolve
from tests.support.changes import WriteRequest, build, commit
from tests.support.dataset_builder import (
    NYC,
    DbtNode,
    airlines,
    airlines_builder,
    build_nyc,
    build_table,
    commit_change,
    flights,
    flights_builder,
    replace_partition,
    weather,
    weather_builder,
)
from tests.support.documents import digest, load_document
from tests.support.stores import Backoff, fail, keys

PLAIN = LogScope("dataset", "plain")
CUBE = LogScope("cube", "nyc")


def test_first_commit(store):
    done = build_table(store)
    assert (done.entry.version, done.warning) == (1, "")
    state = resolve(store, PLAIN)
    assert state.version == 1
    assert state.snapshot("plain").rows == 3
    assert state.datasets["plain"].stamp.version == 1
    assert load_document(store, "plain").metadata["ktk_base"] == f"1:{done.entry.commit}"


def test_every_object_has_a_purpose(store):
    build_nyc(store)
    state = resolve(store, CUBE)
    data = {key for item in state.snapshots().values() for key in item.files["key"].to_pylist()}
    found = {key for key in keys(store, "nyc++") if "/table/" in key and "=" in key}
    assert found <= data
    assert not [key for key in keys(store) if "/intent/" in key]


def test_digest_chain(store):
    build_nyc(store)
    before, name = "", ""
    for entry, sha256 in read_entries(store, CUBE, 0):
        assert (entry.parent_sha256, entry.parent) == (before, name)
        assert digest(store.get(CUBE.entry_key(entry.version))) == sha256
        before, name = sha256, entry.commit
    assert resolve(store, CUBE).head_sha256 == before


def test_time_never_runs_backwards(store):
    build_nyc(store)
    times = [entry.time for entry, _ in read_entries(store, CUBE, 0)]
    assert times == sorted(set(times))


def test_lost_answer_of_a_put_that_worked(store):
    store.faults.append(fail("after", "put_if_absent", "/log/"))
    assert build_table(store).entry.version == 1
    assert len(list(read_entries(store, PLAIN, 0))) == 1


def test_put_that_did_nothing_is_repeated(store):
    store.faults.append(fail("before", "put_if_absent", "/log/"))
    assert build_table(store).entry.version == 1
    assert len(list(read_entries(store, PLAIN, 0))) == 1


def test_unknown_outcome_deletes_nothing(store):
    store.faults += [fail("before", "put_if_absent", "/log/")] * store.backoff.tries
    with pytest.raises(CommitStateUnknownError, match=r"store.relation\('plain'\).history\(\)"):
        build_table(store)
    assert [key for key in keys(store) if key.endswith(".parquet")]
    assert not [call for call in store.calls if call[0] == "delete"]


def test_pauses_between_puts_double(store):
    store.faults += [fail("before", "put_if_absent", "/log/")] * 4
    assert build_table(store).entry.version == 1
    assert store.pauses == [0.1, 0.2, 0.4, 0.8]


def test_pauses_are_bounded_and_random():
    pauses = []
    backoff = Backoff(first=1, longest=7, sleep=pauses.append, jitter=lambda: 0.5)
    for failures in (1, 2, 3, 4, 5000):
        backoff.pause(failures)
    assert pauses == [0.5, 1, 2, 3.5, 3.5]


def test_store_that_surely_wrote_nothing_is_no_unknown_outcome(store):
    def refuse(method, key):
        if method == "put_if_absent" and "/log/" in key:
            raise StoreError("the disk is full", nothing_written=True)

    store.hooks.append(refuse)
    with pytest.raises(StoreError, match="disk is full"):
        build(store, pa.table({"a": [1]}), WriteRequest("plain"))
    assert keys(store) == {".ktk/name/plain"}  # which counts no more
    assert store.pauses == []


def test_a_sure_failure_says_nothing_of_an_earlier_put(store):
    """The first put may still land when a later one is known to have done nothing."""

    def refuse(method, key):
        if method == "put_if_absent" and "/log/" in key:
            known = ("put_if_absent", key) in store.calls[:-1]
            raise StoreError("no answer", nothing_written=known)

    store.hooks.append(refuse)
    with pytest.raises(CommitStateUnknownError, match="no answer"):
        build(store, pa.table({"a": [1]}), WriteRequest("plain"))
    assert [key for key in keys(store) if "/table/" in key]
    assert [key for key in keys(store) if "/intent/" in key]


def test_damaged_entry_in_the_slot_is_an_unknown_outcome(store):
    def take(method, key):
        if method == "put_if_absent" and "/log/" in key:
            store.hooks.clear()
            store.put_if_absent(key, b"damaged")

    store.hooks.append(take)
    with pytest.raises(CommitStateUnknownError):
        build(store, pa.table({"a": [1]}), WriteRequest("plain"))
    assert [key for key in keys(store) if "/table/" in key]


def test_lost_slot_takes_the_next(store):
    build_table(store)
    builder = DbtNode(store, "plain")
    base = resolve(store, PLAIN)
    for value in (4, 5):
        table = pa.table({"a": [value]})
        done = builder.commit_append(table, base)
    assert done.entry.version == 3
    state = resolve(store, PLAIN)
    assert state.snapshot("plain").rows == 5
    # Files keep the order of their commits, whatever their names are.
    entries = [entry.commit for entry, _ in read_entries(store, PLAIN, 0)]
    assert state.snapshot("plain").files["commit"].to_pylist() == entries
    # The lost attempt left no snapshot behind.
    snapshots = {item.datasets["plain"].snapshot for item, _ in read_entries(store, PLAIN, 0)}
    assert keys(store, ".ktk/dataset/plain/snapshots/") == snapshots


def test_parallel_writers(store):
    build_table(store)
    base = resolve(store, PLAIN)
    builder, failures = DbtNode(store, "plain"), []

    def write(value):
        try:
            table = pa.table({"a": [value]})
            builder.commit_append(table, base)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    state = resolve(store, PLAIN)
    assert (state.version, state.snapshot("plain").rows) == (9, 11)
    assert len({entry.commit for entry, _ in read_entries(store, PLAIN, 0)}) == 9
    assert load_document(store, "plain").stamp.version == 9


@pytest.mark.parametrize(
    ("mine", "theirs", "conflict"),
    [
        ("append", "append", ""),
        ("append", "replace", ""),
        ("append", "rebuild", "what it started from is gone"),
        ("append", "remove", "what it started from is gone"),
        ("rebuild", "append", "would undo"),
        ("rebuild", "rebuild", "what it started from is gone"),
        ("remove", "append", "would undo"),
        ("replace", "replace", "both touch partition"),
        ("replace", "append", "both touch partition"),
    ],
)
@pytest.mark.parametrize("listed", [1_000, 0])
def test_conflicts(store, mine, theirs, conflict, listed, monkeypatch):
    monkeypatch.setattr(conflicts, "_MOST_LISTED", listed)
    builder = flights_builder(store)
    builder.commit_rebuild(flights())
    base = resolve(store, CUBE)

    def change(operation):
        def make(commit_id):
            if operation == "remove":
                return DatasetChange(builder.uuid, "remove", None)
            if operation == "replace":
                snapshot = builder.snapshot(flights(["JFK"], 5), commit_id)
                partitions = frozenset({"origin=JFK"})
                return DatasetChange(
                    builder.uuid, "replace", lambda base, attempt: snapshot, partitions
                )
            table = flights(["JFK"], 7)
            return getattr(builder, operation)(table, commit_id)

        return make

    commit_change(store, change(theirs), base)
    if conflict:
        with pytest.raises(CommitConflictError, match=conflict):
            commit_change(store, change(mine), base)
        assert resolve(store, CUBE).version == 2
    else:
        assert commit_change(store, change(mine), base).entry.version == 3


def test_a_commit_of_many_files_does_not_list_them(store, monkeypatch):
    monkeypatch.setattr(conflicts, "_MOST_LISTED", 2)
    builder = DbtNode(store, "t", ("origin",))
    builder.commit_rebuild(flights(["JFK", "LGA"]))
    base, unread = (resolve(store, scope_of("t")) for _ in range(2))
    few = builder.commit_append(flights(["JFK"], 7)).entry
    many = builder.commit_append(flights(["EWR", "JFK", "SFO"], 9)).entry
    assert (len(few.changes["t"].added), few.changes["t"].unlisted) == (1, False)
    change = many.changes["t"]
    assert (change.added, change.removed, change.unlisted) == ((), (), True)
    documents = [store.get(scope_of("t").entry_key(item.version)) for item in (few, many)]

    def new(origin):
        return replace_partition(builder, "origin", origin, flights([origin], 5))

    assert [parse_entry(data, "").changes for data in documents] == [few.changes, many.changes]

    done = commit_change(store, new("LGA"), base)
    assert done.entry.version == 4
    with pytest.raises(CommitConflictError, match="both touch partition origin=SFO"):
        commit_change(store, new("SFO"), base)
    store.delete([many.datasets["t"].snapshot])
    with pytest.raises(CommitConflictError, match="partitions is unknown: a clean-up has removed"):
        commit_change(store, new("EWR"), unread)


def test_files_that_are_replaced_by_name_do_not_depend_on_what_is_not_listed(store, monkeypatch):
    monkeypatch.setattr(conflicts, "_MOST_LISTED", 0)
    builder = DbtNode(store, "t", ("origin",))
    builder.commit_rebuild(flights(["JFK", "LGA"]))
    base = resolve(store, scope_of("t"))
    files = base.snapshot("t").files
    winner = builder.commit_append(flights(["EWR"])).entry.datasets["t"]
    builder.commit_append(flights(["SFO"]))
    store.delete([winner.snapshot])  # as a clean-up does

    def rewritten(commit_id):
        added = builder.files(flights(["LGA"], 5), commit_id)[0]

        def rebase(base, attempt):
            return base.changed(files.slice(1), added)

        return DatasetChange("t", "compact", rebase, frozenset())

    assert commit_change(store, rewritten, base).entry.version == 4


def test_the_entry_of_a_large_commit_is_small(store):
    builder = DbtNode(store, "t", ("origin",))
    builder.commit_rebuild(flights(["JFK"]))
    done = builder.commit_append(flights([f"A{n}" for n in range(1_001)]))
    assert len(store.get(scope_of("t").entry_key(done.entry.version))) < 2_000
    assert resolve(store, scope_of("t")).snapshot("t").file_table.num_rows == 1_002


def test_writers_of_different_datasets_only_share_the_slots(store):
    flights_builder(store).commit_rebuild(flights())
    base = resolve(store, CUBE)
    weather_builder(store).commit_rebuild(weather(), base)
    done = airlines_builder(store).commit_rebuild(airlines(), base)
    assert done.entry.version == 3
    assert set(resolve(store, CUBE).datasets) == {
        f"nyc++{n}" for n in ("airlines", "flights", "weather")
    }


def test_checks_of_the_cube_are_repeated_after_a_lost_slot(store):
    flights_builder(store).commit_rebuild(flights())
    base = resolve(store, CUBE)
    weather_builder(store).commit_rebuild(weather(), base)
    other = DbtNode(store, "nyc++storms", (), (), NYC.metadata("storms"))
    table = pa.table({"hour": [1], "gust": [9.0]})
    with pytest.raises(ConsistencyError, match="`gust` is in several datasets: storms, weather"):
        other.commit_rebuild(table, base)
    assert resolve(store, CUBE).version == 2


def test_files_that_a_cleanup_gave_up_are_not_committed(store):
    build_table(store)
    base = resolve(store, PLAIN)
    commit_id = new_commit_id()
    change = DbtNode(store, "plain").append(pa.table({"a": [9]}), commit_id)
    lost = next(key for key in keys(store, "plain/") if commit_id in key)
    commit(base, ChangeSet(PendingCommit(), (), deleted=(lost,)))
    with pytest.raises(CommitConflictError, match="chose to delete files that this run wrote"):
        commit(base, ChangeSet(PendingCommit(commit_id), (change,)))


def test_snapshots_of_a_writer_that_stood_still_are_not_given_up(store):
    """Its entry came after the clean-up's listing, its snapshot long before."""
    build_table(store)
    base = resolve(store, PLAIN)
    commit_id = new_commit_id()
    slow = DbtNode(store, "plain").append(pa.table({"a": [9]}), commit_id)
    commit(base, ChangeSet(PendingCommit(commit_id), (slow,)))
    listed = resolve(store, PLAIN).datasets["plain"].entry.snapshot
    with pytest.raises(CommitConflictError, match=r"Version 2 of the log needs .* Nothing was del"):
        commit(base, ChangeSet(PendingCommit(), (), deleted=(listed,)))
    assert resolve(store, PLAIN).snapshot("plain").rows == 4


def test_cleanup_in_between_is_no_conflict(store):
    build_table(store)
    base = resolve(store, PLAIN)
    commit(base, ChangeSet(PendingCommit(), (), deleted=("plain/table/old.parquet",)))
    done = DbtNode(store, "plain").commit_append(pa.table({"a": [9]}), base)
    assert done.entry.version == 3
    assert next(read_entries(store, PLAIN, 1))[0].operation == "cleanup"
