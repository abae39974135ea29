"""Tells why a dataset has to be computed again, by the note of what its rows were computed from.

See docs/design/statements.md, Computed from the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from ktk_engine.errors import KtkError, VersionGoneError
from ktk_engine.log.change.reads import Read, Reads
from ktk_engine.log.computed import (
    Computed,
    DatasetVersion,
    changed_since,
    relative_store,
    versions_read,
)
from ktk_engine.log.state import State
from ktk_engine.log.version import state_at
from ktk_engine.plan.statement.compare_versions import change_that_matters
from ktk_engine.plan.statement.trace import Trace


def why_computed_again(
    note: Computed | None,
    own: State,
    uuid: str,
    work: Mapping[str, str],
    statement: Trace | None,
    *,
    continues: bool = False,
    plans: bool = True,
) -> str:
    """Give the first reason to compute a dataset again, as a predicate; empty if there is none.

    Args:
        note: what the dataset in the scope `own` was computed from; None without a note.
        own: the newest version of the dataset's scope.
        uuid: of the dataset.
        work: what would decide about the rows now; see `Computed.work`.
        statement: what computes it, traced at the newest versions; None if it reads nothing.
        continues: whether a run may add to the rows that are there. The rows then stay as they are
            only if the last run has stored none.
        plans: whether versions of what is read are compared by what the statement needs of them,
            which costs some time.
    """
    if note is None:
        return "no note says what its rows were computed from"
    changed = changed_since(own, uuid, note.version, note.commit)
    if changed is not None:
        return f"its rows changed by hand in version {changed}" if changed else "its rows changed"
    for part in sorted({*work, *note.work}):
        if work.get(part) != note.work.get(part):
            return f"its {part} changed"
    if note.unknown:
        what, where = next(iter(note.unknown.items()))
        return f"{what} ({where})" if where else what
    if statement is not None and statement.unknown:
        return str(statement.unknown[0])
    if continues and not note.unchanged:
        return "its last run stored rows, and may have more to add"
    if statement is None:
        return "what it reads is not known" if note.read else ""
    return _changed_read(note, own, statement, plans)


def _changed_read(note: Computed, own: State, statement: Trace, plans: bool) -> str:
    """The first change of what is read that matters; empty if there is none."""
    try:
        reads = statement.reads()
        now = versions_read(own.store, [reads])
    except KtkError as error:
        return f"what it reads changed: {error.message}"
    if now == note.read:
        return ""
    changed = _other_rows(note.read, reads, own)
    # A version that the statement names is not compared: it is the same, or it is another one.
    if not changed or not plans or _at_moments(now) != _at_moments(note.read):
        return changed
    try:
        return change_that_matters(
            statement, statement.relations.earlier(_versions(note.read, own))
        )
    except KtkError as error:
        return f"{changed}: {error.message}"


def _at_moments(read: Iterable[DatasetVersion]) -> list[DatasetVersion]:
    return [item for item in read if item.moment]


def _other_rows(noted: Iterable[DatasetVersion], reads: Reads, own: State) -> str:
    """The first dataset that has had a change of rows since it was noted; empty if none has."""
    known: dict[tuple[str, str, str], DatasetVersion] = {}
    for one in noted:
        if known.setdefault((*one.key, one.moment), one) != one:
            return f"{one.uuid} was read at two versions"
    found = {
        (relative_store(own.store.url, item.state.store.url), item.uuid, item.moment): item
        for item in reads.looked_at
        if isinstance(item, Read)
    }
    if other := sorted(found.keys() ^ known.keys()):
        return f"it reads {other[0][1]}" if other[0] in found else f"{other[0][1]} is gone"
    for key, item in found.items():
        before, after = known[key], item.state.dataset(item.uuid)
        if before.document or after.foreign:
            if before.document != after.foreign:
                return f"{item.uuid} was changed by another program"
        elif changed_since(item.state, item.uuid, before.version, before.commit) is not None:
            version = after.entry.version if after.entry else 0
            return f"{item.uuid} changed, version {before.version} -> {version}"
    return ""


def _versions(noted: Sequence[DatasetVersion], own: State) -> Callable[[State], State]:
    """The version of a scope that was read, with the datasets that were read of it."""

    def version_of(state: State) -> State:
        place = relative_store(own.store.url, state.store.url)
        found = [item for item in noted if (item.store, item.scope) == (place, state.scope)]
        read = [item for item in found if not item.moment]
        if found and not read:
            return state  # each place of the statement names its version
        if not read or any(item.document for item in read):
            raise VersionGoneError(f"{state.scope} was not read before, or not from its log.")
        then = state_at(state, max(item.version for item in read))
        known = {(item.uuid, item.version, item.commit) for item in read}
        kept = {
            uuid: item
            for uuid, item in then.datasets.items()
            if item.entry and (uuid, item.entry.version, item.entry.commit) in known
        }
        if kept.keys() != {item.uuid for item in read}:
            raise VersionGoneError(f"{state.scope} has another history than the one it was.")
        return replace(then, datasets=kept)

    return version_of
