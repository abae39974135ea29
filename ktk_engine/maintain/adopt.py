"""Takes over what another program made of datasets, where the log cannot tell what counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.errors import DatasetNotFoundError, ForeignWriterError, FormatError
from ktk_engine.format.document import DatasetDocument
from ktk_engine.format.load_document import load_document
from ktk_engine.log.commit import DatasetChange, role_of
from ktk_engine.log.entry import DatasetEntry
from ktk_engine.log.foreign import kept_metadata, snapshot_of_document, with_document
from ktk_engine.log.snapshot import Snapshot, read_snapshot
from ktk_engine.log.state import DatasetState, State, removal
from ktk_engine.maintain.change_datasets import ChangeResult, change_datasets
from ktk_engine.store.interface import ObjectStore


@dataclass(frozen=True)
class AdoptedDataset:
    """A dataset that another program changed.

    Attributes:
        name: its id within the cube, or the table's name.
        snapshot: what it will be.
        kept: number of files that both the log's newest version and the document have.
        gained: number of files that only the document has.
        lost: keys of files that only the log's newest version has; their rows would be gone.
        lost_rows: rows of those, None if unknown.
    """

    name: str
    snapshot: Snapshot
    kept: int
    gained: int
    lost: tuple[str, ...]
    lost_rows: int | None

    def __str__(self) -> str:
        text = f"{self.name}: {self.kept:,} files stay, {self.gained:,} are new"
        if not self.lost:
            return f"{text}, none is lost"
        rows = "an unknown number of" if self.lost_rows is None else f"{self.lost_rows:,}"
        return f"{text}, {len(self.lost):,} are lost with {rows} rows, such as {self.lost[0]}"


@dataclass(frozen=True)
class Adoption:
    """What would be taken over.

    Attributes:
        state: the scope it was found in.
        datasets: those that another program changed.
    """

    state: State
    datasets: tuple[AdoptedDataset, ...]

    @property
    def loses(self) -> bool:
        """Whether rows of the newest version would be gone."""
        return any(item.lost for item in self.datasets)


def plan_adoption(store: ObjectStore, name: str) -> Adoption:
    """Find what another program changed in a cube or table; nothing is written.

    Args:
        store: where it lives.
        name: the cube or the table.

    Raises:
        DatasetNotFoundError: there is no such cube or table.
        ForeignWriterError: a document is damaged or gone, or names files that are gone: there is
            nothing to take over.
    """
    state = find_scope(store, name)
    changed = [item for item in state.datasets.values() if item.foreign or item.problem]
    return Adoption(state, tuple(_plan_dataset(state, item) for item in changed))


def run_adoption(
    adoption: Adoption, history: Mapping[str, str] | None = None, *, force: bool = False
) -> ChangeResult:
    """Commit a planned adoption: the documents count from now on.

    Files that are lost stay in the store, and in older versions, until a clean-up.

    Args:
        adoption: what `plan_adoption` found.
        history: what the log says of this commit, for people.
        force: also where rows of the newest version are lost.

    Raises:
        ForeignWriterError: rows would be lost, and `force` is not given; nothing was written.
        ConsistencyError: the cube's datasets would not fit together; nothing was written.
        CommitConflictError: another run changed them meanwhile; nothing was written.
    """
    state = adoption.state
    if not adoption.datasets:
        return ChangeResult(state.scope.name, (), state.version)
    if adoption.loses and not force:
        lines = "\n".join(f"- {item}" for item in adoption.datasets)
        raise ForeignWriterError(
            f"{state.scope.name}: rows of version {state.version} are not in what the other "
            f"program wrote:\n{lines}\nNothing was written. To give them up, run: "
            f"ktk adopt {state.scope.name} --force"
        )
    changes = tuple(_change(state, item) for item in adoption.datasets)
    return change_datasets(state, f"adopt {state.scope.name}", changes, history)


def _change(state: State, item: AdoptedDataset) -> DatasetChange:
    role = role_of(state.scope, item.snapshot)
    return DatasetChange(
        item.snapshot.uuid, "adopt", lambda base, attempt: item.snapshot, None, role
    )


def _plan_dataset(state: State, item: DatasetState) -> AdoptedDataset:
    document = _document(state, item)
    before = _before(state, item.entry) if item.entry else None
    snapshot = snapshot_of_document(state.store, document)
    if before is not None and item.same_files:
        snapshot = with_document(before, document)
    elif before is not None:
        metadata = kept_metadata(before.metadata, document)
        snapshot = replace(snapshot, metadata=metadata, properties=before.properties)
    old = set(before.files["key"].to_pylist()) if before else set()
    new = set(snapshot.files["key"].to_pylist())
    gone = sorted(old - new)
    rows = None
    if before is not None:
        rows = before.with_files(_files(before, gone)).rows
    return AdoptedDataset(
        state.scope.dataset_id(item.uuid),
        snapshot,
        kept=len(old & new),
        gained=len(new - old),
        lost=tuple(gone),
        lost_rows=rows,
    )


def _before(state: State, entry: DatasetEntry) -> Snapshot:
    return read_snapshot(state.store, entry.snapshot, entry.snapshot_sha256)


def _files(snapshot: Snapshot, keys: Sequence[str]) -> pa.Table:
    return snapshot.files.filter(pc.is_in(snapshot.files["key"], pa.array(keys, pa.string())))


def _document(state: State, item: DatasetState) -> DatasetDocument:
    """What the other program published, if there is something sound."""
    try:
        document = load_document(state.store, item.uuid)
    except (DatasetNotFoundError, FormatError) as error:
        raise ForeignWriterError(f"{item.problem}. There is nothing to take over.") from error
    keys = {info.key for info in state.store.list(f"{item.uuid}/")}
    named = [*document.partitions.values(), *document.indices.values()]
    missing = [key for key in named if key not in keys and key.startswith(f"{item.uuid}/")]
    if missing:
        raise ForeignWriterError(
            f"The document of dataset {item.uuid} in {state.store.url} names {len(missing):,} "
            f"files that are gone, such as {missing[0]}. Nothing was written. Restore them, or "
            f"drop the dataset: {removal(state.scope, item.uuid)}"
        )
    return document
