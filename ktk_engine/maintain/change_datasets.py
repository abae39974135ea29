"""Commits a change of datasets as a whole: they are removed, brought back or taken over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from ktk_engine.cube.dataset_uuid import split_uuid
from ktk_engine.errors import CommitConflictError, ConsistencyError, VersionGoneError
from ktk_engine.files.physical_schemas import unstored_columns
from ktk_engine.gate.gate import check_scope
from ktk_engine.log.change.change_set import DatasetChange, Rebase, unchecked
from ktk_engine.log.change.reads import NOTHING_READ, Reads
from ktk_engine.log.state import State
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.messages import Remedy
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


def check_brought(
    target: State, brought: Collection[str], origin: Callable[[], State], *, is_here: bool = True
) -> Callable[[Mapping[str, Snapshot]], None]:
    """Give the check of a scope that gets datasets, by uuid, of another version or cube.

    It is `check_scope`, and refuses with a `ConsistencyError` what Kartothek could not read: where
    `origin` publishes no documents, datasets may have columns that their files lack, and where
    documents are published, Kartothek asks each file for each column. `is_here` tells that the
    scope is in the store of who asks, where a remedy works.
    """

    def check(snapshots: Mapping[str, Snapshot]) -> None:
        check_scope(snapshots)
        if not _have_documents(snapshots):
            return
        for uuid in brought:
            item = snapshots[uuid]
            names = unstored_columns(item, item.physical_schemas, item.file_column("physical"))
            if not names or _had_documents(origin):
                continue
            cube = split_uuid(uuid)[0]
            off = Remedy.on("stop_documents", cube) if is_here else "`publish` with `kartothek` off"
            raise ConsistencyError(
                f"Dataset {uuid} has columns that files of it lack: "
                f"{', '.join(f'`{name}`' for name in names)}. {target.scope} of "
                f"{target.store.url} publishes documents for Kartothek, which cannot read such "
                "a dataset. Nothing was committed. Stop the documents of that cube first: ",
                off,
                ". Once they are published again, the missing columns are written.",
            )

    return check


def brought(uuid: str, snapshot: Snapshot, *, replaces: bool) -> Rebase:
    """Give a dataset the content that it had in another version, or that another dataset has.

    It goes on being published as it was. Raises a `CommitConflictError` if another run built or
    removed it, so that it no longer `replaces` one, or does now.
    """

    def rebase(base: Snapshot | None, attempt: int) -> Snapshot:
        if (base is not None) != replaces:
            raise CommitConflictError(
                f"Dataset {uuid} was {'removed' if replaces else 'built'} meanwhile. Nothing was "
                "committed. Run it again."
            )
        return snapshot if base is None else snapshot.published_like(base)

    return rebase


def _had_documents(origin: Callable[[], State]) -> bool:
    try:
        return _have_documents(origin().snapshots())
    except VersionGoneError:
        return False  # unknown


def _have_documents(snapshots: Mapping[str, Snapshot]) -> bool:
    return any(item.is_seed and item.has_documents for item in snapshots.values())


def change_datasets(
    state: State,
    operation: str,
    changes: tuple[DatasetChange, ...],
    history: Mapping[str, str] | None = None,
    *,
    check: Callable[[Mapping[str, Snapshot]], None] = check_scope,
    reads: Reads = NOTHING_READ,
) -> ChangeResult:
    """Commit a change that needs no new data files of its own; `check` sees the cube as it will be.

    `operation` is a verb with the datasets' names. Without changes the log only records another
    program's change, unchecked. Raises a `ConsistencyError` if the cube's datasets would not fit
    together, and a `CommitConflictError` if another run changed one meanwhile.
    """
    checked = check if changes else unchecked
    with ScopeTransaction(state, operation, history or {}, checked, publish) as changed:
        changed.depends_on(reads)
        for change in changes:
            changed.change(change)
        changed.commit()
    return ChangeResult.of(changed)
