"""A transaction: one attempt at one commit, made inside the block or not at all."""

from __future__ import annotations

import pytest

from ktk_engine import Store
from ktk_engine.errors import CommitConflictError, CommitStateUnknownError
from ktk_engine.log.change.change_set import DatasetChange
from ktk_engine.publish.publish import publish  # deep: the noun knows no publishing
from tests.support.changes import ScopeTransaction, build, comment_on
from tests.support.committed import read_entry, resolve
from tests.support.documents import Comments
from tests.support.interrupting_store import CUBE, PLAIN, TABLE, build_small, rows
from tests.support.stores import keys, refuse


@pytest.fixture
def state(store):
    build_small(store)
    return resolve(store, PLAIN)


def begun(state, **others):
    return ScopeTransaction(
        state, "change t", {"who": "a"}, lambda snapshots: None, publish, **others
    )


def kept(uuid="t", operation="properties"):
    return DatasetChange(uuid, operation, lambda base, attempt: base, frozenset())


def test_a_commit_is_made_inside_the_block(store, state):
    with begun(state) as own:
        own.change(kept())
        assert own.committed is None
        own.commit("why")
        assert resolve(store, PLAIN).version == own.committed.entry.version == state.version + 1
        with pytest.raises(AssertionError, match="one commit"):
            own.commit()
    entry, _ = read_entry(store, PLAIN, state.version + 1)
    assert entry.history == {"reason": "why", "who": "a"}
    assert not [key for key in keys(store) if "/intent/" in key]


def test_without_a_commit_its_files_go(store, state):
    before = keys(store)
    with begun(state) as own:
        own.announce("t")
        store.put(f"t/table/{own.commit_id}-0-0-0.parquet", b"")
        assert [key for key in keys(store) if "/intent/" in key]
    assert keys(store) == before and resolve(store, PLAIN).version == state.version


def test_what_was_committed_stays_whatever_comes_after_it(store, state):
    with pytest.raises(KeyboardInterrupt), begun(state) as own:
        own.change(kept())
        store.put(f"t/table/{own.commit_id}-0-0-0.parquet", b"")
        own.commit()
        raise KeyboardInterrupt
    assert [key for key in keys(store, "t/table/") if own.commit_id in key]


def test_an_unknown_outcome_deletes_nothing(store, state):
    refuse(store, "put_if_absent", "/log/")
    with pytest.raises(CommitStateUnknownError), begun(state) as own:
        own.change(kept())
        store.put(f"t/table/{own.commit_id}-0-0-0.parquet", b"")
        own.commit()
    assert [key for key in keys(store, "t/table/") if own.commit_id in key]


def test_tags_and_keys_that_go_are_in_the_entry(store, state):
    with begun(state) as own:
        own.tag("a", 1)
        own.delete(["t/table/old.parquet"])
        own.commit()
    entry, _ = read_entry(store, PLAIN, state.version + 1)
    assert (entry.tags, entry.deleted) == ({"a": 1}, ("t/table/old.parquet",))


@pytest.mark.parametrize("ask", ["commit", "checked"])
def test_a_required_base_refuses_any_commit_in_between(store, state, ask):
    with pytest.raises(CommitConflictError, match="came first"), begun(state) as own:
        own.change(kept())
        own.require_base()
        comment_on(store, "t", Comments("a"))
        getattr(own, ask)()


@pytest.mark.parametrize("ask", ["commit", "checked"])
@pytest.mark.parametrize("may_hold", [True, False, None])
def test_what_was_looked_at_is_compared_with_the_head(store, state, ask, may_hold):
    asked = []

    def judge(store, files):
        asked.append(files.files.num_rows)
        return may_hold

    with begun(state) as own:
        own.looked_at("t", None if may_hold is None else judge)
        build(store, rows(1), TABLE, mode="append")
        if may_hold is False:
            getattr(own, ask)()
        else:
            with pytest.raises(CommitConflictError, match="after this run had read it"):
                getattr(own, ask)()
    assert asked == ([] if may_hold is None else [1])


def test_another_scope_is_compared_with_its_newest_version(store, state):
    other = resolve(store, CUBE)
    with begun(other) as elsewhere, begun(state) as own:
        elsewhere.looked_at("c++s")
        own.depends_on(elsewhere.reads)
        comment_on(store, "c++s", Comments("a"))
        own.checked()
        build(store, rows(1), TABLE, mode="append")
        Store.of(store).cube("c").delete("x = 1")
        with pytest.raises(CommitConflictError, match=r"c\+\+s"):
            own.checked()


def test_nothing_looked_at_asks_nothing(store, state):
    with begun(state) as own:
        refuse(store, "put", "")
        assert own.checked() is state
