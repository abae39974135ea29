"""Everything that one commit brings: plain data, which is committed or staged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ktk_engine.log.change.dataset_change import DatasetChange
from ktk_engine.log.change.reads import NOTHING_READ, Reads
from ktk_engine.log.pending_commit import PendingCommit
from ktk_engine.snapshot.snapshot import Snapshot

Check = Callable[[Mapping[str, Snapshot]], None]


@dataclass(frozen=True)
class Transaction:
    """Everything that one commit brings.

    Attributes:
        write: the write that it ends; its id was made once, before the first put.
        changes: one a dataset.
        check: the cube's own checks over all snapshots as they would be; raises if violated.
            Of a transaction that only removes datasets it gets none.
        history: for people: the dbt node, invocation and the like.
        deleted: keys that a clean-up is going to delete.
        tags: names of versions to give, or with None to take back.
        exact: whether any commit that comes in between is a conflict.
        reads: what the changes were computed from; others must not have changed it.
    """

    write: PendingCommit
    changes: tuple[DatasetChange, ...]
    check: Check = lambda snapshots: None
    history: Mapping[str, str] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    tags: Mapping[str, int | None] = field(default_factory=dict)
    exact: bool = False
    reads: Reads = NOTHING_READ

    @property
    def commit(self) -> str:
        """The commit's id."""
        return self.write.commit
