"""What a writer wants to do to one dataset: plain data, from which a commit is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ktk_engine.log.dbt_node import DbtNode
from ktk_engine.log.entry import DatasetRole, Operation
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
    role: DatasetRole = "table"
    relation: str | None = None  # name in SQL; None keeps it
    builder: DbtNode | None = None  # the dbt node that builds it; None keeps it
