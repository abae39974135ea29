"""Several changes of one dataset as one."""

from __future__ import annotations

from dataclasses import replace

from ktk_engine.log.change.change_set import DatasetChange, Rebase
from ktk_engine.log.change.conflict import METADATA_ONLY_OPERATIONS
from ktk_engine.log.entry import Operation
from ktk_engine.snapshot.snapshot import Snapshot


def joined(first: DatasetChange, second: DatasetChange) -> DatasetChange:
    """Combine two changes of a dataset: the second on top of the first."""
    before, after = first.rebase, second.rebase
    if after is None:
        return second
    if before is None:
        return _in_place(after, second)
    if second.operation == "rebuild":
        return replace(second, rebase=_on_either(before, after))

    def rebase(base: Snapshot | None, attempt: int) -> Snapshot:
        return after(before(base, attempt), attempt)

    both = replace(
        second,
        rebase=rebase,
        relation=first.relation if second.relation is None else second.relation,
        builder=first.builder if second.builder is None else second.builder,
    )
    if second.operation in METADATA_ONLY_OPERATIONS:
        return replace(both, operation=first.operation, partitions=first.partitions)
    if first.operation in METADATA_ONLY_OPERATIONS:
        return both
    same = first.operation in (second.operation, "rebuild")
    partitions = None
    if first.partitions is not None and second.partitions is not None:
        partitions = first.partitions | second.partitions
    return replace(both, operation=first.operation if same else "replace", partitions=partitions)


def _in_place(after: Rebase, second: DatasetChange) -> DatasetChange:
    """A change that follows a removal, for a base without it: it starts from no dataset."""

    def rebase(base: Snapshot | None, attempt: int) -> Snapshot:
        return after(None, attempt)

    operation: Operation = "restore" if second.operation == "undrop" else second.operation
    return replace(second, rebase=rebase, operation=operation)


def _on_either(before: Rebase, after: Rebase) -> Rebase:
    """A rebuild on top of the dataset as it was, or of the one that was just made."""

    def rebase(base: Snapshot | None, attempt: int) -> Snapshot:
        return after(before(None, attempt) if base is None else base, attempt)

    return rebase


def computed_once(change: DatasetChange) -> DatasetChange:
    """A change that is computed again only on another base, since it may write index files."""
    rebase = change.rebase
    if rebase is None:
        return change
    known: list[tuple[Snapshot | None, Snapshot]] = []

    def once(base: Snapshot | None, attempt: int) -> Snapshot:
        if not known or known[0][0] is not base:
            known[:] = [(base, rebase(base, attempt))]
        return known[0][1]

    return replace(change, rebase=once)
