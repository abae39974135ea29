"""Changes to the datasets of one scope that become one commit, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ktk_engine.gate.gate import CubeCheck
from ktk_engine.log.commit import Committed, DatasetChange, Transaction, commit
from ktk_engine.log.intent import announced
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.log.state import State
from ktk_engine.log.write import Write
from ktk_engine.write.checked_write import CheckedWrite
from ktk_engine.write.rows import Rows
from ktk_engine.write.stage_rows import StagedRows, stage_rows
from ktk_engine.write.write_result import WriteResult

Rebase = Callable[[Snapshot | None, int], Snapshot]


@dataclass
class Staging:
    """Changes that become one commit; each sees what those before it did.

    Make one with `staged`. Files are written at once, the commit comes last.

    Attributes:
        base: what the changes were computed from.
        history: what the log says of the commit, for people.
        pending: the write that the commit ends.
        folders: keys of the folders with its data files.
        done: the commit; None before it, and where nothing changed.
    """

    base: State
    history: Mapping[str, str] = field(default_factory=dict)
    pending: Write = field(default_factory=Write)
    folders: set[str] = field(default_factory=set)
    done: Committed | None = None
    _changes: dict[str, DatasetChange] = field(default_factory=dict)
    _rows: list[StagedRows] = field(default_factory=list)

    @property
    def state(self) -> State:
        """The scope as it would be; its snapshots name files that are not committed yet."""
        staged: dict[str, Snapshot | None] = {}
        for uuid, change in self._changes.items():
            known = self.base.snapshot(uuid) if uuid in self.base.datasets else None
            staged[uuid] = change.rebase(known, 0) if change.rebase else None
        return self.base.with_staged(staged)

    @property
    def results(self) -> list[WriteResult]:
        """What each write of rows did, once it is committed."""
        return [rows.result(self.done) for rows in self._rows] if self.done else []

    def write(self, write: CheckedWrite, rows: Rows) -> None:
        """Write rows as files; see `stage_rows`."""
        self.folders.add(write.target.uuid)
        staged = stage_rows(write, rows, self.pending.commit)
        self._rows.append(staged)
        for change in staged.changes:
            self.change(change)

    def change(self, change: DatasetChange) -> None:
        """Take in what the commit does to a dataset, on top of what it does already."""
        if change.rebase is not None:
            change = replace(change, rebase=_computed_once(change.rebase))
        known = self._changes.get(change.uuid)
        self._changes[change.uuid] = _joined(known, change) if known else change

    def commit(self) -> None:
        """Commit all changes; none that anybody would see commits nothing."""
        changes = tuple(
            change
            for uuid, change in self._changes.items()
            if change.rebase is not None or uuid in self.base.datasets
        )
        if not changes:
            return
        reason = "; ".join(filter(None, (rows.reason for rows in self._rows)))
        history = {"reason": reason, **self.history} if reason else self.history
        check = CubeCheck(self.base.scope.cube)
        self.done = commit(self.base, Transaction(self.pending, changes, check, history))


@contextmanager
def staged(
    state: State, operation: str, history: Mapping[str, str] | None = None
) -> Iterator[Staging]:
    """Let a block stage changes, and commit them at its end.

    If the block raises, nothing is committed and its files are removed again.

    Args:
        state: what the changes are computed from.
        operation: the verb and what it is about, for people.
        history: what the log says of the commit, for people.

    Raises:
        ConsistencyError: the cube's datasets would not fit together.
        CommitConflictError: another run changed a dataset meanwhile.
        VersionGoneError: a clean-up removed what the changes were computed from.
    """
    staging = Staging(state, history or {})
    with (
        state.reading(),
        announced(state.store, state.scope, staging.pending, operation, staging.folders),
    ):
        yield staging
        staging.commit()


def _joined(first: DatasetChange, second: DatasetChange) -> DatasetChange:
    """Two changes of a dataset as one."""
    before, after = first.rebase, second.rebase
    if before is None or after is None or second.operation == "rebuild":
        return second
    same = first.operation in (second.operation, "rebuild")
    partitions = None
    if first.partitions is not None and second.partitions is not None:
        partitions = first.partitions | second.partitions

    def rebase(base: Snapshot | None, attempt: int) -> Snapshot:
        return after(before(base, attempt), attempt)

    return replace(
        second,
        operation=first.operation if same else "replace",
        rebase=rebase,
        partitions=partitions,
        relation=first.relation if second.relation is None else second.relation,
        builder=first.builder if second.builder is None else second.builder,
    )


def _computed_once(rebase: Rebase) -> Rebase:
    """What it gives is kept until it is asked about another base: it may write index files."""
    known: list[tuple[Snapshot | None, Snapshot]] = []

    def once(base: Snapshot | None, attempt: int) -> Snapshot:
        if not known or known[0][0] is not base:
            known[:] = [(base, rebase(base, attempt))]
        return known[0][1]

    return once
