"""Staged commits: seen by who holds the stage, by nobody else until they are published."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from ktk_engine.errors import CommitConflictError, ConfigurationError, DataError, StoreError
from ktk_engine.log.chain import read_entry
from ktk_engine.log.scope import scope_of
from ktk_engine.log.stage.staged_store import StagedStore
from ktk_engine.publish.publish import publish_head
from ktk_engine.publish.publish_stages import discard_stages, publish_stages
from tests.support.changes import (
    ScopeTransaction,
    WriteRequest,
    build,
    change_indexes,
    comment_on,
    plan_cleanup,
    plan_copy,
    remove,
    restore,
    run_cleanup,
    run_copy,
    tag_version,
    undrop,
)
from tests.support.committed import list_relations, resolve, snapshot_of, version_of
from tests.support.documents import (
    Comments,
    ViewDocument,
    add_view,
    load_document,
    view_key,
)
from tests.support.interrupting_store import (
    CUBE,
    ENRICHMENT,
    NOTHING,
    PLAIN,
    SEED,
    TABLE,
    InterruptingStore,
    build_small,
    cells,
    content,
    rows,
)
from tests.support.stores import LocalStore

NEW = scope_of("new")


@pytest.fixture(scope="module")
def prepared():
    """A store with a cube, a table and a view."""
    store = InterruptingStore()
    build_small(store)
    add_view(store, ViewDocument("seen", "view", sql="select 1"))
    return store.objects


@pytest.fixture
def store(prepared):
    return InterruptingStore(prepared)


def everything(store):
    names = {relation.name for relation in list_relations(store)}
    return {scope: content(store, scope) for scope in (CUBE, PLAIN, NEW)}, names


def run(stage, numbers=(5, 6)):
    """What a run with several models does."""
    build(stage, cells(*numbers), SEED, history={"node": "model.p.s"})
    build(stage, cells(*numbers, value="w"), ENRICHMENT, history={"node": "model.p.e"})
    build(stage, rows(1), TABLE, mode="append")
    build(stage, rows(2), TABLE, mode="append")
    comment_on(stage, "t", Comments("what it is"))
    change_indexes(stage, "t", ["a"])
    build(stage, rows(3), WriteRequest("new"))
    add_view(stage, ViewDocument("v", "view", sql="select 2"))
    stage.delete([view_key("seen")])


def test_only_the_run_sees_what_is_staged_and_its_end_is_one_version(store):
    before, stage = everything(store), StagedStore(store)
    run(stage)
    assert everything(store) == before
    staged, names = everything(stage)
    assert names == {"s", "e", "t", "new", "v"}
    assert staged[CUBE][1]["c++s"] != before[0][CUBE][1]["c++s"]
    assert len(staged[PLAIN][1]["t"][1]) == 3
    done = publish_stages([stage])
    assert sorted(item.entry.scope for item in done) == ["cube/c", "dataset/new", "dataset/t"]
    after, names_after = everything(store)
    assert {scope: found for scope, (_, found) in after.items()} == {
        scope: found for scope, (_, found) in staged.items()
    }
    assert names_after == names
    assert [after[scope][0] for scope in (CUBE, PLAIN, NEW)] == [3, 2, 1]
    entry, _ = read_entry(store, CUBE, 3)
    assert {uuid: item.operation for uuid, item in entry.changes.items()} == {
        "c++s": "rebuild",
        "c++e": "rebuild",
    }
    assert entry.history["node"] == "model.p.s, model.p.e"
    assert entry.history["reason"] == "staged run"
    table, _ = read_entry(store, PLAIN, 2)
    assert table.changes["t"].operation == "append"
    assert len(table.changes["t"].added) == 2
    for uuid in ("c++s", "c++e", "t", "new"):  # for Kartothek
        assert list(load_document(store, uuid).partitions) == snapshot_of(store, uuid).labels
    assert not [key for key in store.objects if "/intent/" in key]


def test_what_follows_the_end_of_a_run_is_for_all_to_see(store):
    stage = StagedStore(store)
    run(stage)
    publish_stages([stage])
    build(stage, rows(9), TABLE)
    assert content(store, PLAIN) == content(stage, PLAIN)
    assert content(store, PLAIN)[0] == 3


def test_a_discarded_run_leaves_nothing(store, prepared):
    stage = StagedStore(store)
    run(stage)
    discard_stages([stage])
    assert store.objects.keys() == prepared.keys()
    assert everything(stage) == everything(InterruptingStore(prepared))


def test_a_thread_that_goes_on_after_the_end_commits_nothing(store, prepared):
    stage = StagedStore(store)
    run(stage)
    discard_stages([stage], is_over=True)
    with pytest.raises(StoreError, match=r"the staged run has ended\. Nothing was committed"):
        build(stage, rows(9), TABLE)
    assert store.objects.keys() == prepared.keys()


def test_an_index_is_written_once(store):
    stage = StagedStore(store)
    run(stage)
    written = [key for key in store.objects if "/indices/" in key]
    publish_stages([stage])
    assert [key for key in store.objects if "/indices/" in key] == written


def published_or_old(store, prepared, staged):
    """How many scopes are new; each is all new or all old."""
    before = everything(InterruptingStore(prepared))[0]
    after = everything(store)[0]
    for scope, (_, found) in after.items():
        assert found in (before[scope][1], staged[scope][1])
    return sum(found == staged[scope][1] for scope, (_, found) in after.items())


def heals(store):
    """The next publisher and a clean-up two days later leave what the heads need."""
    for scope in (CUBE, PLAIN):
        assert publish_head(store, scope).warning == ""
        build(store, rows(7) if scope == PLAIN else cells(7), TABLE if scope == PLAIN else SEED)
    build(store, rows(7), WriteRequest("new"))
    store.days = 2
    for scope in (CUBE, PLAIN, NEW):
        run_cleanup(store, scope, NOTHING)
        assert plan_cleanup(store, scope, NOTHING).is_empty
        assert not list(store.list(f"{scope.folder}/intent/"))


def test_an_error_says_what_of_the_run_is_committed(prepared):
    """Also where the store fails right after a commit, and where only a view is missing."""
    stage = StagedStore(InterruptingStore(prepared))
    run(stage)
    first = len(stage.beneath.calls)
    publish_stages([stage])
    before = InterruptingStore(prepared)
    heads = {scope: version_of(before, scope) for scope in (CUBE, PLAIN, NEW)}
    found = set()
    for at in range(first, len(stage.beneath.calls)):
        store = InterruptingStore(prepared, at, "after", StoreError)
        stage = StagedStore(store)
        run(stage)
        try:
            publish_stages([stage])
        except StoreError as error:
            new = [str(scope) for scope in heads if version_of(store, scope) > heads[scope]]
            assert error.committed == bool(new), at
            assert all(scope in str(error) for scope in new), at
            assert ("committed and stay so" in str(error)) == (len(new) == 3), at
            assert ("Only this part of the staged run is committed" in str(error)) == (
                len(new) in (1, 2)
            ), at
            found.add(len(new))
    assert {0, 1, 2, 3} <= found


def test_an_error_at_the_end_keeps_what_it_found(prepared, monkeypatch):
    error = DataError("two rows of one cell", ("finding",))
    error.add_note("a note")
    stage, calls = StagedStore(InterruptingStore(prepared)), []
    run(stage)

    def second(self):
        calls.append(self)
        if len(calls) > 1:
            raise error
        return commit(self)

    commit = ScopeTransaction.commit
    monkeypatch.setattr(ScopeTransaction, "commit", second)
    with pytest.raises(DataError, match="Only this part of the staged run is committed") as caught:
        publish_stages([stage])
    assert caught.value.findings == ("finding",) and "a note" in caught.value.__notes__
    assert caught.value.committed


@pytest.mark.parametrize("kind", ["killed", "interrupted", "store fails"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_that_ends_anywhere_leaves_each_scope_old_or_new(prepared, kind, when):
    stage = StagedStore(InterruptingStore(prepared))
    run(stage)
    staged, first = everything(stage)[0], len(stage.beneath.calls)
    publish_stages([stage])
    calls, outcomes = len(stage.beneath.calls), []
    # KTK_EXAMPLES tries all calls.
    every, late = (1, 1) if "KTK_EXAMPLES" in os.environ else (71, 7)
    for at in (*range(0, first, every), *range(first, calls, late)):
        error = StoreError if kind == "store fails" else KeyboardInterrupt
        store = InterruptingStore(prepared, at, when, error, again=kind == "killed")
        stage = StagedStore(store)
        said = ""
        try:
            run(stage)
            publish_stages([stage])
        except (KeyboardInterrupt, StoreError) as error:
            said = str(error)
            if kind != "killed":
                discard_stages([stage])
        store.at, store.again = -1, False
        outcomes.append(published_or_old(store, prepared, staged))
        if kind == "store fails" and outcomes[-1] in (1, 2):
            assert "Only this part of the staged run is committed: cube/c" in said
        heals(store)
    assert {0, 3} <= set(outcomes)


def test_a_commit_of_another_process_that_contradicts_publishes_nothing(store):
    stage = StagedStore(store)
    run(stage)
    build(store, cells(8), SEED)
    before = everything(store)
    with pytest.raises(CommitConflictError, match=r"c\+\+s was rebuilt by version 3"):
        publish_stages([stage])
    assert everything(store) == before
    assert not [key for key in store.objects if "/intent/" in key]


def test_commits_of_others_that_do_not_contradict_stay(store):
    stage = StagedStore(store)
    build(stage, cells(5, value="w"), ENRICHMENT)
    build(stage, rows(1), TABLE, mode="append")
    comment_on(stage, "t", Comments("said"))
    build(stage, rows(2), TABLE, mode="append")
    build(store, cells(8), SEED)
    build(store, rows(100), TABLE, mode="append")
    publish_stages([stage])
    found = content(store, PLAIN)[1]["t"]
    assert {row for _, row in found[1]} == {f"{{'a': {n}}}" for n in (0, 1, 2, 100)}
    assert found[0] == Comments("said")
    cube = content(store, CUBE)[1]
    assert {row for _, row in cube["c++s"][1]} == {"{'x': 8, 'v': 80}"}
    assert {row for _, row in cube["c++e"][1]} == {"{'x': 5, 'w': 50}"}


def test_a_staged_scope_is_seen_as_it_was(store):
    stage = StagedStore(store)
    build(stage, cells(5, value="w"), ENRICHMENT)
    seen = content(stage, CUBE)
    for number in range(3):
        build(store, cells(8 + number), SEED)
    assert content(stage, CUBE) == seen
    build(stage, cells(6, value="w"), ENRICHMENT, mode="append")
    publish_stages([stage])
    assert content(store, CUBE)[0] == 6


def test_a_contradiction_in_one_schema_stops_all(prepared):
    stores = [InterruptingStore(prepared) for _ in range(2)]
    stages = [StagedStore(store) for store in stores]
    for stage in stages:
        run(stage)
    build(stores[1], rows(4), TABLE)
    before = [everything(store) for store in stores]
    with pytest.raises(CommitConflictError, match="t was rebuilt"):
        publish_stages(stages)
    assert [everything(store) for store in stores] == before


def test_a_clean_up_spares_what_is_staged(store):
    stage = StagedStore(store)
    run(stage)
    staged = everything(stage)[0]
    for scope in (CUBE, PLAIN, NEW):
        run_cleanup(store, scope, NOTHING)
    publish_stages([stage])
    assert {s: f for s, (_, f) in everything(store)[0].items()} == {
        s: f for s, (_, f) in staged.items()
    }


def test_what_cannot_be_taken_back_is_refused(store):
    stage = StagedStore(store)
    run(stage)
    with pytest.raises(ConfigurationError, match="a tag cannot be part of a staged run"):
        tag_version(stage, "t", "q1", 1)
    store.days = 20
    with pytest.raises(ConfigurationError, match="a clean-up cannot be part of a staged run"):
        run_cleanup(stage, PLAIN, NOTHING)


def _restored(stage):
    restore(stage, "t", 1)


def _copied(stage):
    build(stage, rows(0, 9), WriteRequest("o"))
    run_copy(plan_copy(resolve(stage, scope_of("o")), stage, "t"))


@pytest.mark.parametrize("back", [lambda stage: undrop(stage, "t"), _restored, _copied])
def test_what_is_dropped_and_brought_back_is_published(store, back):
    stage = StagedStore(store)
    remove(stage, "t")
    back(stage)
    build(stage, rows(5), TABLE, mode="append")
    expected = content(stage, PLAIN)[1]
    publish_stages([stage])
    assert content(store, PLAIN) == (2, expected)
    assert load_document(store, "t").stamp.version == 2


def test_what_is_made_and_replaced_by_a_copy_is_published(store):
    stage = StagedStore(store)
    build(stage, rows(3), WriteRequest("new"))
    run_copy(plan_copy(resolve(stage, PLAIN), stage, "new", overwrite=True))
    publish_stages([stage])
    assert content(store, NEW)[1]["new"] == content(store, PLAIN)[1]["t"]


def test_removals_are_staged(store):
    stage = StagedStore(store)
    remove(stage, "t")
    remove(stage, "c", "e")
    assert {item.name for item in list_relations(stage)} == {"s", "seen"}
    assert {item.name for item in list_relations(store)} == {"s", "e", "t", "seen"}
    build(stage, rows(4), TABLE)
    remove(stage, "t")
    publish_stages([stage])
    assert {item.name for item in list_relations(store)} == {"s", "seen"}


def test_what_a_run_makes_and_takes_away_again_is_no_version(store):
    before, stage = everything(store), StagedStore(store)
    build(stage, rows(4), WriteRequest("new"))
    remove(stage, "new")
    assert publish_stages([stage]) == []
    assert everything(store) == before


def test_threads_stage_side_by_side(store):
    stage = StagedStore(store)

    def append(number):
        build(stage, cells(number, value="w"), ENRICHMENT, mode="append")
        build(stage, cells(number), SEED, mode="append")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(10, 22)))
    publish_stages([stage])
    version, found = content(store, CUBE)
    assert version == 3
    assert len(found["c++s"][1]) == 2 * (2 + 12)
    assert len(found["c++e"][1]) == 2 * (1 + 12)


def test_a_pickled_stage_is_the_store_beneath(tmp_path):
    store = LocalStore(tmp_path)
    stage = StagedStore(store)
    assert pickle.loads(pickle.dumps(stage)) == store
