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
    """What a writer wants to do to one dataset.

    Attributes:
        uuid: the dataset.
        operation: the verb.
        rebase: gives the new snapshot on top of the current one (None if there is none yet);
            the second argument counts attempts. Called again after each lost slot. None removes
            the dataset.
        partitions: folders of the partitions that are replaced; None means all of them.
        role: what the dataset is in its cube.
        relation: name by which SQL knows it; None leaves it as it is.
        builder: the dbt node that builds it; None leaves it as it is.
    """

    uuid: str
    operation: Operation
    rebase: Rebase | None
    partitions: frozenset[str] | None = None
    role: DatasetRole = "table"
    relation: str | None = None
    builder: DbtNode | None = None
