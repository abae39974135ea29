"""Makes a cube or table publish documents for Kartothek, or stop publishing them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.errors import CommitConflictError, ForeignWriterError, PublishError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.log.change.change_set import DatasetChange, unchecked
from ktk_engine.log.change.reads import any_dataset
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.messages import Remedy
from ktk_engine.publish.publish import publish, publish_head
from ktk_engine.snapshot.snapshot import WITHOUT_DOCUMENTS, Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.write.alter.alter_columns import write_missing_columns
from ktk_engine.write.staging import Staging


def publish_documents(
    store: ObjectStore, name: str, wanted: bool, history: Mapping[str, str] | None = None
) -> str:
    """Write documents for Kartothek with each commit, or delete them and write none any more.

    Without documents a commit costs the same however many files there are, and Kartothek sees
    nothing. Then no Kartothek program may run its clean-up there: it deletes what no document
    names. Columns that were added meanwhile to a cube are null without a file, which Kartothek
    cannot read: datasets that have some are written first, in the same commit. Returns a warning,
    empty if all is as it should be. Raises a `DatasetNotFoundError`, a `PublishError` (no seed
    dataset yet, or a staged run), a `ForeignWriterError`, or a `CommitConflictError` if a dataset
    came or got other columns meanwhile.
    """
    if store.is_staged:
        raise PublishError(
            f"A staged run cannot change whether {name} has documents for Kartothek. Nothing "
            "was changed. Do it by itself, ",
            Remedy("unstaged"),
            ".",
        )
    state = find_scope(store, name)
    for item in state.datasets.values():
        if item.problem:
            raise ForeignWriterError(item.problem, ". Nothing was changed.")
    snapshots = {uuid: state.snapshot(uuid) for uuid in state.datasets}
    owners = [u for u, item in snapshots.items() if item.is_seed or not state.scope.cube]
    if not owners:
        raise PublishError(
            f"Cube {name} has no seed dataset yet, so it has no documents. Nothing was changed."
        )
    changed = [uuid for uuid in owners if snapshots[uuid].has_documents != wanted]
    if not changed:
        return publish_head(store, state.scope).warning

    def rebase(base: Snapshot | None, attempt: int) -> Snapshot:
        if base is None:
            raise CommitConflictError("A dataset was removed meanwhile. Nothing was committed.")
        return replace(base, properties={**base.properties, WITHOUT_DOCUMENTS: not wanted})

    reason = "publish for Kartothek" if wanted else "stop publishing for Kartothek"
    operation = f"{reason}: {name}"
    with ScopeTransaction(state, operation, history or {}, unchecked, publish) as changing:
        if wanted and state.scope.cube:
            changing.chose(any_dataset)  # none gets a column that its files lack meanwhile
            staging, cache = Staging(changing, []), MetadataCache()
            for uuid in snapshots:
                write_missing_columns(staging, uuid, cache)
        for uuid in changed:
            changing.change(DatasetChange(uuid, "properties", rebase, frozenset()))
        return changing.commit(reason).warning
