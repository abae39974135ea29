"""Everything that one commit brings: plain data, to be committed or staged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ktk_engine.log.change.reads import NOTHING_READ, Reads
from ktk_engine.log.dbt_node import DbtNode
from ktk_engine.log.entry import Operation
from ktk_engine.log.pending_commit import PendingCommit
from ktk_engine.snapshot.snapshot import Snapshot

Rebase = Callable[[Snapshot | None, int], Snapshot]


@dataclass(frozen=True)
class DatasetChange:
    """What a writer wants to do to one dataset."""

    uuid: str
    operation: Operation
    # Makes the new snapshot from the current one (None if there is none yet). The second argument
    # counts attempts, one more after each lost slot. None removes the dataset.
    rebase: Rebase | None
    partitions: frozenset[str] | None = None  # folders of replaced partitions; None: all
    relation: str | None = None  # name in SQL; None keeps it
    builder: DbtNode | None = None  # the dbt node that builds it; None keeps it


Check = Callable[[Mapping[str, Snapshot]], None]


def unchecked(snapshots: Mapping[str, Snapshot]) -> None:
    """The check of changes after which datasets fit together as before."""


@dataclass(frozen=True)
class ChangeSet:
    """Everything that one commit brings."""

    write: PendingCommit  # its id is made once, before the first put
    changes: tuple[DatasetChange, ...]  # at most one per dataset
    # The cube's checks of all snapshots as they would be, which raise. A change set that only
    # removes datasets gets none.
    check: Check = unchecked
    # for people: the dbt node, invocation and the like
    history: Mapping[str, str] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()  # keys that a clean-up is about to delete
    tags: Mapping[str, int | None] = field(default_factory=dict)  # None takes the name back
    requires_base: bool = False  # any commit in between is a conflict
    # what the changes were computed from, which others must not have changed
    reads: Reads = NOTHING_READ

    @property
    def commit(self) -> str:
        """The commit's id."""
        return self.write.commit
