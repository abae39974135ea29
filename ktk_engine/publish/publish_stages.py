"""Publishes what a staged run did: one commit per scope, after all of them were checked.

See docs/design/files-and-commits.md, Staged runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ktk_engine.errors import KtkError
from ktk_engine.log.change.change_set import Check
from ktk_engine.log.change.reads import Read, Reads, joined_reads
from ktk_engine.log.commit import Committed
from ktk_engine.log.computed import DatasetVersion, read_computed, write_computed
from ktk_engine.log.entry import DatasetEntry
from ktk_engine.log.pending_commit import CommitStatus
from ktk_engine.log.scope import FOLDER
from ktk_engine.log.stage.staged_store import StagedCommit, StagedStore
from ktk_engine.log.state import State, resolve
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.publish.publish import publish
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.ask_all import ask_all

_VIEWS = f"{FOLDER}/view/"


def publish_stages(stores: Sequence[StagedStore]) -> list[Committed]:
    """Commit what was staged, one commit per cube or table, and close the stages.

    All commits are checked before the first one is made, and names are claimed. Views follow when
    all are committed, and Kartothek's documents come last. Raises what `commit` raises; nothing was
    published then, unless the message says that another commit came after the check.
    """
    found = {store: _publications(store) for store in stores}
    publications = [item for items in found.values() for item in items]
    done: list[Committed] = []
    try:
        if publications:
            ask_all(publications[0].base.store, ScopeTransaction.checked, publications)
        for publication in publications:
            if publication.changes:
                with publication:
                    done.append(publication.commit())
        for store in stores:
            _publish_views(store)
        # Only Kartothek needs documents, and a large one takes time: commit everything first.
        done = [publish(item) for item in done]
        with suppress(KtkError):
            _publish_notes(stores, done)
    except KtkError as error:
        said = _what_stands(publications)
        if not said:
            raise
        told = error.with_message(error, said)
        told.committed = True
        raise told from error
    finally:
        for store in stores:
            store.close({item.base.scope: item.status for item in found[store]})
    return done


def _publish_notes(stores: Sequence[StagedStore], done: Sequence[Committed]) -> None:
    """Store the run's notes of what was computed, with the versions and commits it was given.

    A note is left out where others committed after the run had begun: what it says was read has
    no version then. Without it the model runs once more.
    """
    published = {(item.head.store.url, item.head.scope): item for item in done}
    entries: dict[tuple[str, str], DatasetEntry] = {}  # by uuid and staged commit
    for store in stores:
        for scope, commits in store.commits.items():
            made = published.get((store.url, scope))
            if made is None or made.head.version != commits[0].head.version:
                continue
            for uuid, item in resolve(store, scope).datasets.items():
                if item.entry is not None and uuid in made.entry.datasets:
                    entries[uuid, item.entry.commit] = made.entry.datasets[uuid]
    parts = [part for store in stores for found in store.commits.values() for part in found]
    staged = frozenset(part.change_set.commit for part in parts)
    for store in stores:
        for scope, commits in store.commits.items():
            for uuid in {change.uuid for part in commits for change in part.change_set.changes}:
                note = read_computed(store, scope, uuid)
                entry = entries.get((uuid, note.commit)) if note else None
                if note is None or entry is None:
                    continue
                read = [_as_published(item, staged, entries) for item in note.read]
                if all(read):
                    told = replace(note, version=entry.version, commit=entry.commit)
                    told = replace(told, read=tuple(item for item in read if item))
                    write_computed(store.beneath, scope, uuid, told)


def _as_published(
    item: DatasetVersion, staged: Collection[str], entries: Mapping[tuple[str, str], DatasetEntry]
) -> DatasetVersion | None:
    """A version that a run read, as others see it; None if they do not."""
    if item.commit not in staged:
        return item
    entry = entries.get((item.uuid, item.commit))
    return replace(item, version=entry.version, commit=entry.commit) if entry else None


def _what_stands(publications: Sequence[ScopeTransaction]) -> str:
    """Say which scopes are committed; empty if none is."""
    made = [item for item in publications if item.changes]
    found = [item for item in made if item.status is CommitStatus.COMMITTED]
    names = ", ".join(str(item.base.scope) for item in found)
    if found and len(found) == len(made):
        return f" All cubes and tables of the staged run are committed and stay so: {names}."
    return f" Only this part of the staged run is committed: {names}." if found else ""


def discard_stages(stores: Sequence[StagedStore], is_over: bool = False) -> None:
    """Close stages without publishing, and delete the files that were written.

    With `is_over`, a thread that goes on anyway can no longer commit.
    """
    for store in stores:
        store.close({}, is_over)


def _publications(store: StagedStore) -> list[ScopeTransaction]:
    """What each scope's staged commits become; without changes it is only checked."""
    made = (_publication(store, commits) for commits in store.commits.values())
    return [item for item in made if item.changes or item.reads]


def _publication(store: StagedStore, commits: Sequence[StagedCommit]) -> ScopeTransaction:
    """All commits of a scope as one, which depends on all that they read."""
    made = [item for item in commits if item.change_set.changes] or commits
    change_sets = [item.change_set for item in made]
    base = replace(made[0].head, store=store.beneath)
    publication = ScopeTransaction(
        base,
        f"publish a staged run: {base.scope.name}",
        _one_history([item.history for item in change_sets]),
        _all_checks([item.check for item in change_sets]),
        None,
    )
    for change in (change for item in change_sets for change in item.changes):
        publication.change(change)
    if any(item.requires_base for item in change_sets):
        publication.require_base()
    reads = joined_reads(item.change_set.reads for item in commits)
    publication.depends_on(_seen_by_all(reads, base))
    return publication


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
