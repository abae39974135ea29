"""Ctrl-C, SystemExit and bugs at every call of the store: nothing committed is ever lost."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

import pyarrow as pa
import pytest

from ktk_engine.errors import StoreError
from ktk_engine.publish import publish as publishing  # deep: it is killed
from tests.support.changes import (
    ColumnChanges,
    Notes,
    alter_columns,
    build,
    change_indexes,
    comment_on,
    note,
    plan_adoption,
    plan_cleanup,
    publish_head,
    remove,
    run_adoption,
    run_cleanup,
    staged,
    tag_version,
)
from tests.support.committed import resolve, scope_of
from tests.support.dataset_builder import write_plain
from tests.support.documents import Comments, load_document
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
from tests.support.queries import MetadataCache

OLD = scope_of("old")  # which another program wrote


def rewritten(verb):
    def run(store):
        state = resolve(store, PLAIN)
        old = {"replaced": state.snapshot("t").labels[:2], "state": state}
        build(store, rows(1, 2, 3), TABLE, mode="files", verb=verb, **old)

    return run


def altered(changes):
    def run(store):
        with staged(resolve(store, PLAIN), "alter t") as staging:
            alter_columns(staging, "t", changes, MetadataCache())

    return run


VERBS = {
    "build": (CUBE, lambda store: build(store, cells(1, 2, value="w"), ENRICHMENT)),
    "rebuild": (CUBE, lambda store: build(store, cells(5, 6), SEED)),
    "append": (CUBE, lambda store: build(store, cells(9), SEED, mode="append")),
    "replace partitions": (
        CUBE,
        lambda store: build(store, cells(7, partitions=["b"]), SEED, mode="partitions"),
    ),
    "rewrite": (PLAIN, rewritten("replace")),
    "compact": (PLAIN, rewritten("compact")),
    "comment": (PLAIN, lambda store: comment_on(store, "t", Comments("what it is"))),
    "index": (PLAIN, lambda store: change_indexes(store, "t", ["a"])),
    "add a column": (PLAIN, altered(ColumnChanges(add={"b": pa.string()}))),
    "rename a column": (PLAIN, altered(ColumnChanges(rename={"a": "b"}))),
    "properties": (PLAIN, lambda store: note(store, "t", Notes(set={"owner": "ops"}))),
    "tag": (PLAIN, lambda store: tag_version(store, "t", "q1", 2)),
    "remove a table": (PLAIN, lambda store: remove(store, "t")),
    "remove a dataset": (CUBE, lambda store: remove(store, "c", "e")),
    "clean up": (PLAIN, lambda store: run_cleanup(store, PLAIN, NOTHING)),
    "publish": (PLAIN, lambda store: publish_head(store, PLAIN)),
    "adopt": (OLD, lambda store: run_adoption(plan_adoption(store, "old"))),
}


@pytest.fixture(scope="module")
def prepared():
    """A store with a cube and a table of several versions, the newest one not published."""
    store = InterruptingStore()
    build_small(store)
    build(store, rows(1), TABLE)
    build(store, rows(2), TABLE, mode="append")
    write_plain(store, "old", cells(1, 2), ("p",), indexes=("x",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publishing, "_publish", lambda *_: (publishing.Behind("killed"), None))
        build(store, rows(3), TABLE, mode="append")
    return store.objects


def heals(store, scope, verb, after, landed):
    """A rerun goes through, and a clean-up a day later leaves what the head refers to."""
    if not landed:
        verb(store)
    assert publish_head(store, scope).warning == ""
    state = resolve(store, scope)
    for uuid in state.datasets:
        published = load_document(store, uuid).partitions
        assert list(published) == state.snapshot(uuid).labels
    store.days = 2
    assert run_cleanup(store, scope, NOTHING).warning == ""
    assert plan_cleanup(store, scope, NOTHING).is_empty
    assert content(store, scope)[1] == after[1]
    assert not list(store.list(f"{scope.folder}/intent/"))


def left_over(store, prepared):
    """Files of an attempt that did not land; they may stay only where a note tells of them."""
    new = store.objects.keys() - prepared.keys()
    return set() if any("/intent/" in key for key in new) else new


@dataclass(frozen=True)
class Case:
    """A verb, and what a store holds before and after it.

    Attributes:
        name: the verb.
        prepared: the store's objects before it.
        before: content before it.
        after: content when nothing disturbs it.
        calls: how often it calls the store.
    """

    name: str
    prepared: dict
    before: tuple
    after: tuple
    calls: int

    def interrupt(self, store):
        """Interrupt the verb, see that nothing is lost, go on; gives whether it was committed."""
        scope, verb = VERBS[self.name]
        raised, done = False, None
        try:
            done = verb(store)
        except BaseException:  # noqa: BLE001
            raised = True
        calm = InterruptingStore(store.objects)
        version, found = content(calm, scope)
        landed = version > self.before[0]
        assert found == (self.after[1] if landed else self.before[1])
        # A clean-up that could not publish says so, and has done nothing.
        assert landed or raised or self.name == "publish" or done.warning
        made = store.calls[: store.at + (store.when == "after")]
        started = any(call == "put_if_absent" and "/log/" in key for call, key in made)
        if not (landed or started or store.again or self.name == "publish"):
            assert left_over(store, self.prepared) == set()
        heals(calm, scope, verb, self.after, landed)
        return landed


def make_case(prepared, name):
    scope, verb = VERBS[name]
    store = InterruptingStore(prepared)
    before = content(store, scope)
    store.calls.clear()
    verb(store)
    calls = len(store.calls)
    return Case(name, prepared, before, content(store, scope), calls)


INTERRUPTS = (KeyboardInterrupt, SystemExit)
BUGS = (RuntimeError, MemoryError, StoreError, OSError)
WAYS = (
    ("before", INTERRUPTS, True),
    ("after", BUGS, False),
    ("after", INTERRUPTS, False),
    ("before", BUGS, False),
)


@pytest.mark.parametrize("name", VERBS)
def test_nothing_committed_is_lost(prepared, name):
    case, outcomes = make_case(prepared, name), []
    for at in range(case.calls):
        # Half of the ways at each call, the other half at the next; KTK_EXAMPLES takes them all.
        ways = WAYS if "KTK_EXAMPLES" in os.environ else WAYS[2 * (at % 2) :][:2]
        for when, kinds, again in ways:
            store = InterruptingStore(prepared, at, when, kinds[at // 2 % len(kinds)], again)
            outcomes.append(case.interrupt(store))
    print(f"{name}: {len(outcomes)} interrupts, {sum(outcomes)} committed")


class Lines:
    """Interrupts at the n-th line that the code of commits runs, as a signal does."""

    FILES = ("log/commit.py", "publish/publish.py", "log/intent.py", "log/pending_commit.py")

    def __init__(self, at=-1):
        self.at, self.count = at, 0

    def __call__(self, frame, event, argument):
        return self.line if frame.f_code.co_filename.endswith(self.FILES) else None

    def line(self, frame, event, argument):
        if event == "line":
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return self.line


def traced(lines, verb):
    def run(store):
        before = sys.gettrace()
        sys.settrace(lines)
        try:
            verb(store)
        finally:
            sys.settrace(before)

    return run


def test_interrupts_between_calls(prepared, monkeypatch):
    """At the lines that the code of commits runs, one after the other."""
    scope, verb = VERBS["append"]
    lines = Lines()
    case = make_case(prepared, "append")
    monkeypatch.setitem(VERBS, "traced", (scope, traced(lines, verb)))
    make_case(prepared, "traced")
    landed = 0
    step = 1 if "KTK_EXAMPLES" in os.environ else 13
    for at in range(1, lines.count + 1, step):
        store = InterruptingStore(prepared)
        with pytest.raises(KeyboardInterrupt):
            traced(Lines(at), verb)(store)
        calm = InterruptingStore(store.objects)
        version, found = content(calm, scope)
        assert found == (case.after[1] if version > case.before[0] else case.before[1])
        if version == case.before[0]:
            assert left_over(store, prepared) == set()
        heals(calm, scope, verb, case.after, version > case.before[0])
        landed += version > case.before[0]
    assert 0 < landed < lines.count / step


def test_who_is_interrupted_learns_what_became_of_the_commit(prepared, caplog):
    notes = []
    for part, when in (("/log/", "before"), ("/log/", "after"), ("by-dataset-metadata", "after")):
        store = InterruptingStore(prepared)
        VERBS["rebuild"][1](store)
        writes = ("put_if_absent", "replace")
        at = next(i for i, (call, key) in enumerate(store.calls) if call in writes and part in key)
        store = InterruptingStore(prepared, at, when)
        with pytest.raises(KeyboardInterrupt) as caught:
            VERBS["rebuild"][1](store)
        notes += caught.value.__notes__
    unknown = "may be committed; nothing was deleted. Look with: store.relation('c').history()"
    assert [unknown in note for note in notes] == [True, True, False]
    assert "is committed and stays so" in notes[2]
    assert [record.getMessage() for record in caplog.records][-3:] == notes


def test_thread_of_a_note_that_does_not_start(prepared, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    store = InterruptingStore(prepared)
    with pytest.raises(RuntimeError):
        VERBS["comment"][1](store)
    assert store.objects == prepared
