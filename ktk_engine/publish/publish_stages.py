"""Publishes what a staged run did: one commit per scope, after all of them were checked.

See docs/design/files-and-commits.md, Staged runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ktk_engine.errors import KtkError
from ktk_engine.log.change.change_set import ChangeSet, Check, DatasetChange
from ktk_engine.log.change.reads import Read, Reads, joined_reads
from ktk_engine.log.commit import Committed, check_commit, commit
from ktk_engine.log.intent import write_intent
from ktk_engine.log.pending_commit import CommitStatus, PendingCommit
from ktk_engine.log.scope import FOLDER, LogScope
from ktk_engine.log.stage.joined_changes import joined
from ktk_engine.log.stage.staged_store import StagedStore
from ktk_engine.log.state import State
from ktk_engine.messages import Message
from ktk_engine.publish.publish import publish
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.ask_all import ask_all

_VIEWS = f"{FOLDER}/view/"


@dataclass(frozen=True)
class _Publication:
    """What one scope's staged commits become; without changes it is only checked."""

    store: StagedStore
    base: State  # the scope as they found it, in the public store
    change_set: ChangeSet  # all of them

    @property
    def scope(self) -> LogScope:
        return self.base.scope

    def checked(self) -> _Publication:
        return replace(self, base=check_commit(self.base, self.change_set))

    def commit(self) -> Committed:
        store, write = self.base.store, self.change_set.write
        with write_intent(store, self.scope, write, f"publish a staged run: {self.scope.name}"):
            return commit(self.base, self.change_set, None)


def publish_stages(stores: Sequence[StagedStore]) -> list[Committed]:
    """Commit what was staged, one commit per cube or table, and close the stages.

    All commits are checked before the first one is made, and names are claimed. Views follow when
    all are committed, and Kartothek's documents come last. Raises what `commit` raises; nothing was
    published then, unless the message says that another commit came after the check.
    """
    publications = [found for store in stores for found in _publications(store)]
    done: list[Committed] = []
    try:
        for publication in _checked(publications):
            if publication.change_set.changes:
                done.append(publication.commit())
        for store in stores:
            _publish_views(store)
        # Only Kartothek needs documents, and a large one takes time: commit everything first.
        done = [publish(item) for item in done]
    except KtkError as error:
        said = _what_stands(publications)
        if not said:
            raise
        told = error.with_message(Message(error, said))
        told.committed = True
        raise told from error
    finally:
        for store in stores:
            store.close(_statuses(store, publications))
    return done


def _what_stands(publications: Sequence[_Publication]) -> str:
    """Say which scopes are committed; empty if none is."""
    made = [p for p in publications if p.change_set.changes]
    found = [p for p in made if p.change_set.write.status is CommitStatus.COMMITTED]
    names = ", ".join(str(item.scope) for item in found)
    if found and len(found) == len(made):
        return f" All cubes and tables of the staged run are committed and stay so: {names}."
    return f" Of the staged run, only this is committed: {names}." if found else ""


def discard_stages(stores: Sequence[StagedStore], is_over: bool = False) -> None:
    """Close stages without publishing, and delete the files that were written.

    With `is_over`, a thread that goes on anyway can no longer commit.
    """
    for store in stores:
        store.close({}, is_over)


def _checked(publications: Sequence[_Publication]) -> list[_Publication]:
    """Each publication on the head that it can be committed on; raises unless all of them can."""
    if not publications:
        return []
    return ask_all(publications[0].store, _Publication.checked, publications)


def _statuses(
    store: StagedStore, publications: Sequence[_Publication]
) -> dict[LogScope, CommitStatus]:
    return {
        item.scope: item.change_set.write.status for item in publications if item.store is store
    }


def _publications(store: StagedStore) -> list[_Publication]:
    found = []
    for commits in store.commits.values():
        made = [item for item in commits if item.change_set.changes] or commits
        base = replace(made[0].head, store=store.beneath)
        reads = [item.change_set.reads for item in commits]
        change_set = _one_change_set([item.change_set for item in made], base, reads)
        if change_set.changes or change_set.reads:
            found.append(_Publication(store, base, change_set))
    return found


def _one_change_set(
    change_sets: Sequence[ChangeSet], base: State, reads: Sequence[Reads]
) -> ChangeSet:
    """All change sets of a scope as one, which depends on all reads."""
    changes: dict[str, DatasetChange] = {}
    for change in (change for item in change_sets for change in item.changes):
        known = changes.get(change.uuid)
        changes[change.uuid] = joined(known, change) if known else change
    seen = (item for item in changes.values() if item.rebase or item.uuid in base.datasets)
    return ChangeSet(
        PendingCommit(),
        tuple(seen),
        _all_checks([item.check for item in change_sets]),
        _one_history([item.history for item in change_sets]),
        exact=any(item.exact for item in change_sets),
        reads=_seen_by_all(joined_reads(reads), base),
    )


def _seen_by_all(reads: Reads, base: State) -> Reads:
    """What a run has read and not made itself, in the public stores.

    What the run has made in another scope is checked where that is published. What it has read of
    its own scope, next to what it has made there, is that of the base.
    """
    found = []
    for item in reads.looked_at:
        state, store = item.state, item.state.store
        if isinstance(store, StagedStore):
            since = store.staged_since(state.scope)
            if not since or state.version < since:
                item = replace(item, state=replace(state, store=store.beneath))
            elif (state.scope, store.beneath.url) != (base.scope, base.store.url) or (
                isinstance(item, Read) and item.uuid not in base.datasets
            ):
                continue
            else:
                item = replace(item, state=base)
        found.append(item)
    return replace(reads, looked_at=tuple(found))


def _all_checks(checks: Sequence[Check]) -> Check:
    different = [check for number, check in enumerate(checks) if check not in checks[:number]]

    def check_all(snapshots: Mapping[str, Snapshot]) -> None:
        for check in different:
            check(snapshots)

    return check_all


def _one_history(histories: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """One history for all commits: the last one's texts, and the nodes and reasons of each."""

    def of_each(key: str) -> list[str]:
        return list(dict.fromkeys(item[key] for item in histories if item.get(key)))

    reasons = "; ".join(["staged run", *of_each("reason")])
    nodes = of_each("node")
    return {**histories[-1], **({"node": ", ".join(nodes)} if nodes else {}), "reason": reasons}


def _publish_views(store: StagedStore) -> None:
    """Put the views, which are documents of their own: the last writer wins, as always."""
    views = store.held_back(_VIEWS)
    for key, data in views.items():
        if data is not None:
            store.beneath.put(key, data)
    store.beneath.delete([key for key, data in views.items() if data is None])
