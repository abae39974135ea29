"""Commits a change of datasets as a whole: they are removed, brought back or taken over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ktk_engine.cube.dataset_uuid import split_uuid
from ktk_engine.errors import ConsistencyError
from ktk_engine.files.physical_schemas import unstored_columns
from ktk_engine.gate.gate import check_scope
from ktk_engine.log.change.change_set import DatasetChange, unchecked
from ktk_engine.log.change.reads import NOTHING_READ, Reads
from ktk_engine.log.state import State
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.messages import Message, Remedy
from ktk_engine.publish.publish import publish
from ktk_engine.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class ChangeResult:
    """The result of a change of datasets."""

    name: str  # the cube or table
    datasets: tuple[str, ...]  # their names within the cube, or the table's name
    version: int  # of the log
    warning: str = ""  # why Kartothek readers may not see the change yet

    @classmethod
    def of(cls, done: ScopeTransaction) -> ChangeResult:
        """The result of a transaction that has committed."""
        committed, scope = done.committed, done.base.scope
        assert committed is not None, "it has committed"
        names = tuple(scope.dataset_id(change.uuid) for change in done.changes)
        return cls(scope.name, names, committed.entry.version, committed.warning)


def check_brought(snapshots: Mapping[str, Snapshot]) -> None:
    """Check a scope that gets datasets of other versions or cubes; see `check_scope`.

    A dataset from where no documents were published may have columns that its files lack. Where
    documents are published, that is a `ConsistencyError`: Kartothek asks each file for each column.
    """
    check_scope(snapshots)
    if not any(item.is_seed and item.has_documents for item in snapshots.values()):
        return
    for uuid, item in snapshots.items():
        if names := unstored_columns(item, item.physical_schemas, item.file_column("physical")):
            raise ConsistencyError(
                Message(
                    f"Dataset {uuid} has columns that files of it lack: "
                    f"{', '.join(f'`{name}`' for name in names)}. The cube publishes documents "
                    "for Kartothek, which cannot read such a dataset. Nothing was committed. "
                    "Stop the documents first: ",
                    Remedy.on("stop_documents", split_uuid(uuid)[0]),
                    ". Once they are published again, the missing columns are written.",
                )
            )


def change_datasets(
    state: State,
    operation: str,
    changes: tuple[DatasetChange, ...],
    history: Mapping[str, str] | None = None,
    *,
    checked: bool = True,
    reads: Reads = NOTHING_READ,
) -> ChangeResult:
    """Commit a change that needs no new data files of its own; the cube is checked as it will be.

    `operation` is a verb with the datasets' names. Without changes the log only records another
    program's change, unchecked. Raises a `ConsistencyError` if the cube's datasets would not fit
    together, and a `CommitConflictError` if another run changed one meanwhile.
    """
    check = check_brought if changes and checked else unchecked
    with ScopeTransaction(state, operation, history or {}, check, publish) as changed:
        changed.depends_on(reads)
        for change in changes:
            changed.change(change)
        changed.commit()
    return ChangeResult.of(changed)
