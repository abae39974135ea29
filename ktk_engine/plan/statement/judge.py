"""Tells why a dataset has to be computed again, by the note of what its rows were computed from.

See docs/design/statements.md, Computed from the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from ktk_engine.errors import KtkError, VersionGoneError
from ktk_engine.log.change.reads import Read
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
    statement: Trace,
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
        statement: what computes it, traced at the newest versions.
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
    if statement.unknown:
        return str(statement.unknown[0])
    if continues and not note.unchanged:
        return "its last run stored rows, and may have more to add"
    return _changed_read(note, own, statement, plans)


def _changed_read(note: Computed, own: State, statement: Trace, plans: bool) -> str:
    """The first change of what is read that matters; empty if there is none."""
    reads = [item for item in statement.reads().looked_at if isinstance(item, Read)]
    if versions_read(own.store, [statement.reads()]) == note.read:
        return ""
    if _have_same_rows(note.read, reads, own):
        return ""
    then = statement.relations.earlier(_versions(note.read, own))
    if not plans:
        return "what it reads changed"
    try:
        return change_that_matters(statement, then)
    except KtkError as error:
        return f"what it reads changed: {error.message}"


def _have_same_rows(noted: Iterable[DatasetVersion], reads: Sequence[Read], own: State) -> bool:
    """Whether each dataset that is read had its last change of rows before it was noted."""
    known: dict[tuple[str, str], DatasetVersion] = {}
    for item in noted:
        if item.document or known.setdefault(item.key, item) != item:
            return False  # of another program, or read at two versions
    found = {(relative_store(own.store.url, item.state.store.url), item.uuid) for item in reads}
    return found == known.keys() and all(
        changed_since(item.state, item.uuid, before.version, before.commit) is None
        for item in reads
        for before in (known[relative_store(own.store.url, item.state.store.url), item.uuid],)
    )


def _versions(noted: Sequence[DatasetVersion], own: State) -> Callable[[State], State]:
    """The version of a scope that was read, with the datasets that were read of it."""

    def version_of(state: State) -> State:
        place = relative_store(own.store.url, state.store.url)
        read = [item for item in noted if (item.store, item.scope) == (place, state.scope)]
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
