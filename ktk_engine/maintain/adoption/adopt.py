"""Takes over what other programs made of datasets: a whole store, or changes to our datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.cube.discovery import find_cube
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import (
    DatasetNotFoundError,
    ForeignWriterError,
    FormatError,
    KtkError,
    ObjectNotFoundError,
)
from ktk_engine.files.index_place import IndexPlace
from ktk_engine.files.others.describe_files import describe_files
from ktk_engine.format.document import DatasetDocument
from ktk_engine.format.load_document import document_bytes, load_document
from ktk_engine.formatting import counted, number, size
from ktk_engine.gate.gate import check_scope, validate_write
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.change.change_set import DatasetChange
from ktk_engine.log.dataset_state import DatasetState
from ktk_engine.log.entry import DatasetEntry
from ktk_engine.log.foreign import kept_metadata, snapshot_of_document, with_document
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import State
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.maintain.adoption.kartothek_readers import reader_notes
from ktk_engine.maintain.adoption.recover_cube import CubeWords, recover_cube
from ktk_engine.maintain.adoption.stale_indices import stale_indices, with_new_indices
from ktk_engine.maintain.change_datasets import ChangeResult
from ktk_engine.messages import Message, Remedy
from ktk_engine.progress import Progress, no_progress
from ktk_engine.publish.publish import publish
from ktk_engine.snapshot.snapshot import LARGE, LEFT_OUT, Snapshot, check_partition_values
from ktk_engine.snapshot.stored_snapshot import read_snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import folded

_NO_WORDS = CubeWords()


@dataclass(frozen=True)
class AdoptedDataset:
    """A dataset that another program made or changed."""

    name: str  # its id within the cube, or the table's name
    snapshot: Snapshot  # as it will be
    kept: int  # number of files in both the log's newest version and the document
    gained: int  # number of files in the document alone
    # Keys of files in the log's newest version alone; their rows would be gone.
    lost: tuple[str, ...]
    lost_rows: int | None  # in these files; None: unknown
    notes: tuple[str, ...] = ()  # sentences on what Kartothek's readers see that may surprise
    is_new: bool = False  # the log did not have it
    # Columns whose indexes are rebuilt, since these do not name all files with values.
    stale: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = f"{number(self.snapshot.rows)} rows, {size(self.snapshot.bytes)}"
        if self.is_new:
            return f"{self.name}: {counted(self.gained, 'file')}, {rows}"
        text = f"{self.name}: {counted(self.kept, 'file stays', 'files stay')}, "
        text += counted(self.gained, "is new", "are new")
        lost = ", none is lost"
        if self.lost:
            many = "an unknown number of" if self.lost_rows is None else f"{self.lost_rows:,}"
            lost = f", {len(self.lost):,} are lost with {many} rows, such as {self.lost[0]}"
        return f"{text}{lost}; {rows}"


@dataclass(frozen=True)
class Adoption:
    """What would be taken over."""

    state: State  # the scope as it was found
    datasets: tuple[AdoptedDataset, ...]  # that another program made or changed
    # None: a table, or a cube without a seed dataset.
    specification: CubeSpecification | None = None

    @property
    def loses(self) -> bool:
        """Whether rows of the newest version would be gone."""
        return any(item.lost for item in self.datasets)

    @property
    def after(self) -> dict[str, Snapshot]:
        """Every dataset of the scope as it will be, by uuid."""
        adopted = {item.snapshot.uuid: item.snapshot for item in self.datasets}
        return {**self.state.snapshots_except(adopted), **adopted}


@dataclass(frozen=True)
class _Found:
    """What was found of a dataset, before anything is added to it."""

    item: DatasetState
    snapshot: Snapshot
    before: Snapshot | None = None
    document: DatasetDocument | None = None
    key: str = ""
    recovered: bool = field(default=False)


def plan_adoption(
    store: ObjectStore,
    name: str,
    words: CubeWords = _NO_WORDS,
    progress: Progress = no_progress,
) -> Adoption:
    """Find what other programs made of a cube or table; nothing is written.

    `words` describe a cube whose documents do not. Raises a `ForeignWriterError` if a document or a
    file that it names is damaged or gone, and a `ConsistencyError` if the cube remains unknown or
    its datasets do not fit together.
    """
    state = find_scope(store, name)
    found = [_find(state, item) for item in state.datasets.values() if _is_to_adopt(item)]
    found = _recovered(state, found, words)
    for item in found:
        check_partition_values(item.snapshot, item.snapshot.partition_keys)
    described = describe_files(store, [item.snapshot for item in found], progress)
    found = [replace(item, snapshot=new) for item, new in zip(found, described, strict=True)]
    adoption = Adoption(state, tuple(_compared(state, item) for item in found))
    if state.scope.cube and found:
        after = adoption.after
        check_scope(after)
        adoption = replace(adoption, specification=specification_of(state.scope, after))
    return _with_refusals(adoption)


def _with_refusals(adoption: Adoption) -> Adoption:
    """Say which datasets can be read but no longer written from now on, and why."""
    if not adoption.datasets:
        return adoption
    id_of = adoption.state.scope.dataset_id
    known = {id_of(uuid): item for uuid, item in adoption.after.items()}
    return replace(
        adoption,
        datasets=tuple(
            replace(item, notes=(*item.notes, *_refusals(adoption.state, item.snapshot, known)))
            for item in adoption.datasets
        ),
    )


def _refusals(state: State, snapshot: Snapshot, known: Mapping[str, Snapshot]) -> Iterator[str]:
    """Why rows with the same columns would be refused."""
    if not snapshot.file_table.num_rows or snapshot.left_out:
        return  # the first rows decide the classes, or a note says it already
    try:
        validate_write(
            replace(WriteRequest.of(snapshot), mode="append"), snapshot.schema, state, known
        )
    except KtkError as error:
        said = " ".join(str(error).split())
        yield f"it can be read here, but its rows cannot be changed as it is: {said}"


def specification_of(
    scope: LogScope, snapshots: Mapping[str, Snapshot]
) -> CubeSpecification | None:
    """What a cube is, by its datasets; None for a table, and without a seed dataset."""
    datasets = {scope.dataset_id(uuid): item for uuid, item in snapshots.items()}
    return find_cube(scope.cube, datasets)


def run_adoption(
    adoption: Adoption, history: Mapping[str, str] | None = None, *, force: bool = False
) -> ChangeResult:
    """Commit a planned adoption: the documents count from now on.

    No data file is touched, and only stale indexes are rebuilt. Lost files stay in the store and
    in older versions until a clean-up. Raises a `ForeignWriterError` if rows would be lost without
    `force`, a `ConsistencyError` if the cube's datasets would not fit together, and a
    `CommitConflictError` if another run changed them meanwhile.
    """
    state = adoption.state
    if not adoption.datasets:
        return ChangeResult(state.scope.name, (), state.version)
    if adoption.loses and not force:
        lines = "\n".join(f"- {item}" for item in adoption.datasets)
        raise ForeignWriterError(
            f"{state.scope.name}: rows of version {state.version} are not in what the other "
            f"program wrote:\n{lines}\nNothing was written. To give them up: ",
            Remedy("adopt_with_loss", name=state.scope.name),
        )
    name, said = f"adopt {state.scope.name}", history or {}
    with ScopeTransaction(state, name, said, check_scope, publish) as changed:
        for item in adoption.datasets:
            changed.change(_change(state, item, changed.commit_id))
        changed.commit()
    return ChangeResult.of(changed)


def _is_to_adopt(item: DatasetState) -> bool:
    """Whether another program changed it, or left files that are not described yet."""
    return not item.is_as_committed or (item.entry is not None and _is_vague(item.entry))


def _is_vague(entry: DatasetEntry) -> bool:
    return entry.rows is None or entry.bytes is None


def _change(state: State, item: AdoptedDataset, commit_id: str) -> DatasetChange:
    def adopted(base: Snapshot | None, attempt: int) -> Snapshot:
        uuid, folder = item.snapshot.uuid, state.scope.segment_folder(commit_id)
        place = IndexPlace(state.store, uuid, commit_id, folder)
        return with_new_indices(place, item.snapshot, item.stale)

    return DatasetChange(item.snapshot.uuid, "adopt", adopted, None)


def _find(state: State, item: DatasetState) -> _Found:
    if item.is_as_committed:
        snapshot = state.snapshot(item.uuid)
        return _Found(item, snapshot, snapshot)
    key, document = _document(state, item)
    before = _before(state, item.entry) if item.entry else None
    return _Found(item, adopted_snapshot(state, item, before, document), before, document, key)


def adopted_snapshot(
    state: State, item: DatasetState, before: Snapshot | None, document: DatasetDocument
) -> Snapshot:
    """The dataset that another program's document describes, completed from the log.

    `before` is what the log has. Raises a `FormatError` if the schema or a label breaks the
    format's rules, and an `ObjectNotFoundError` without a schema.
    """
    if before is not None and item.same_files:
        return with_document(before, document)
    snapshot = snapshot_of_document(state.store, document)
    if before is None:
        return snapshot
    metadata = kept_metadata(before.metadata, document)
    published = (LARGE, LEFT_OUT)
    own = {key: value for key, value in before.properties.items() if key not in published}
    return replace(snapshot, metadata=metadata, properties={**own, **snapshot.properties})


def _recovered(state: State, found: Sequence[_Found], words: CubeWords) -> list[_Found]:
    """Complete a cube's datasets whose documents no longer say what the cube is."""
    if not state.scope.cube or not found:
        return list(found)
    scope, own = state.scope, {item.item.uuid: item.snapshot for item in found}
    datasets = {**state.snapshots_except(own), **own}
    again = recover_cube(
        scope.cube, {scope.dataset_id(uuid): item for uuid, item in datasets.items()}, words
    )
    named = {scope.uuid_of(name): snapshot for name, snapshot in again.items()}
    return [
        replace(item, snapshot=named[item.item.uuid], recovered=True)
        if item.item.uuid in named
        else item
        for item in found
    ]


def _compared(state: State, found: _Found) -> AdoptedDataset:
    snapshot, before = found.snapshot, found.before
    old = set(before.files["key"].to_pylist()) if before else set()
    new = set(snapshot.files["key"].to_pylist())
    gone = sorted(old - new)
    stale = stale_indices(state.store, snapshot)
    notes: tuple[str, ...] = ()
    if found.document is not None:
        notes = reader_notes(found.document, found.key, snapshot, found.recovered)
    notes += tuple(
        f"its index on {name} misses values of {counted(count, 'file')}, so that queries by it "
        "miss rows; it is rebuilt"
        for name, count in stale.items()
    )
    return AdoptedDataset(
        state.scope.dataset_id(found.item.uuid),
        snapshot,
        kept=len(old & new),
        gained=len(new - old),
        lost=tuple(gone),
        lost_rows=replace(before, file_table=_files(before, gone)).rows if before else None,
        notes=notes,
        is_new=before is None,
        stale=tuple(stale),
    )


def _before(state: State, entry: DatasetEntry) -> Snapshot:
    return read_snapshot(state.store, entry.snapshot, entry.snapshot_sha256)


def _files(snapshot: Snapshot, keys: Sequence[str]) -> pa.Table:
    return snapshot.files.filter(pc.is_in(snapshot.files["key"], pa.array(keys, pa.string())))


def _document(state: State, item: DatasetState) -> tuple[str, DatasetDocument]:
    """What the other program published, if it is sound, and its key."""
    try:
        key, _ = document_bytes(state.store, item.uuid)
        document = load_document(state.store, item.uuid)
    except (DatasetNotFoundError, FormatError, ObjectNotFoundError) as error:
        if item.problem:
            said = Message(item.problem, ". There is nothing to take over. Nothing was written.")
            raise item.error(said) from error
        raise type(error)(
            f"Dataset {item.uuid} of {state.store.url} cannot be taken over: {error}. Nothing was "
            "written."
        ) from error
    keys = {folded(info.key) for info in state.store.list(f"{item.uuid}/")}
    named = [*document.partitions.values(), *document.indices.values()]
    missing = [key for key in named if folded(key) not in keys and key.startswith(f"{item.uuid}/")]
    if missing:
        raise ForeignWriterError(
            f"The document of dataset {item.uuid} in {state.store.url} names {len(missing):,} "
            f"files that are gone, such as {missing[0]}. Nothing was written. Restore them from "
            "a backup, or write the dataset again with the program that wrote it."
        )
    return key, document
