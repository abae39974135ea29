"""Resolves what a scope holds: its log's head, its documents, and who changed them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from ktk_engine.errors import DatasetNotFoundError, ForeignWriterError, ObjectNotFoundError
from ktk_engine.format.dataset_key import document_key, msgpack_document_key
from ktk_engine.format.load_document import list_documents, load_document
from ktk_engine.format.stamp import Stamp, read_stamp
from ktk_engine.log.entry import DatasetEntry, LogEntry, digest, parse_entry
from ktk_engine.log.foreign import snapshot_of_document
from ktk_engine.log.scope import Scope
from ktk_engine.log.snapshot import Snapshot, read_snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.key import join_key

_STAMP_BYTES = 1024


@dataclass(frozen=True)
class DatasetState:
    """One dataset of a scope, as resolved.

    Attributes:
        uuid: the dataset's uuid.
        entry: where the log has it; None for a dataset that the log does not know.
        stamp: the published document's stamp; None if there is no document of ours.
        foreign: SHA-256 of a document that another program wrote on top of `entry` (or without
            any log): its content is the truth. Empty if the log is.
        problem: why nobody can tell what the dataset holds; empty if all is well.
    """

    uuid: str
    entry: DatasetEntry | None
    stamp: Stamp | None
    foreign: str = ""
    problem: str = ""


@dataclass(frozen=True)
class State:
    """A scope at one version: every reader and writer starts here.

    Attributes:
        store: where it lives.
        scope: the cube or dataset.
        version: version of the head, 0 if there is no log.
        head: the newest entry, None if there is no log.
        head_sha256: digest of that entry.
        datasets: by uuid, sorted.
        unpublished_removals: documents of datasets that the log has removed.
    """

    store: ObjectStore
    scope: Scope
    version: int
    head: LogEntry | None
    head_sha256: str
    datasets: Mapping[str, DatasetState]
    unpublished_removals: tuple[str, ...] = ()
    _snapshots: dict[str, Snapshot] = field(default_factory=dict, compare=False, repr=False)

    def snapshot(self, uuid: str) -> Snapshot:
        """Load the snapshot of a dataset; once per state.

        Raises:
            DatasetNotFoundError: the scope has no such dataset.
            ForeignWriterError: nobody can tell what it holds.
        """
        state = self.datasets.get(uuid)
        if state is None:
            raise DatasetNotFoundError(f"{self.store.url} has no dataset {uuid}.")
        if state.problem:
            raise ForeignWriterError(state.problem)
        if uuid not in self._snapshots:
            self._snapshots[uuid] = self._load(state)
        return self._snapshots[uuid]

    def snapshots(self) -> dict[str, Snapshot]:
        """Load the snapshots of all datasets, by uuid."""
        return self.snapshots_except(())

    def snapshots_except(self, uuids: Collection[str]) -> dict[str, Snapshot]:
        """Load the snapshots of all datasets but some, by uuid."""
        return {uuid: self.snapshot(uuid) for uuid in self.datasets if uuid not in uuids}

    def _load(self, state: DatasetState) -> Snapshot:
        if state.entry is None or state.foreign:
            return snapshot_of_document(self.store, load_document(self.store, state.uuid))
        return read_snapshot(self.store, state.entry.snapshot)


def resolve(store: ObjectStore, scope: Scope) -> State:
    """Find a scope's head and compare it with the published documents (commit.md, 1).

    Costs one shallow listing, the first kilobyte of each document, one missing log entry and the
    head entry. Nothing is written.

    Raises:
        StoreError: the store could not tell.
    """
    documents = {uuid: _stamp(store, uuid) for uuid in _document_uuids(store, scope)}
    hint = max((stamp.version for stamp in documents.values() if stamp), default=0)
    version, head, sha256 = _find_head(store, scope, hint)
    entries: Mapping[str, DatasetEntry] = head.datasets if head else {}
    datasets, removals = {}, []
    for uuid in sorted({*documents, *entries}):
        if uuid in documents and documents[uuid] and uuid not in entries:
            removals.append(uuid)
            continue
        datasets[uuid] = _classify(store, scope, uuid, documents, head)
    return State(store, scope, version, head, sha256, datasets, tuple(removals))


def read_entries(
    store: ObjectStore, scope: Scope, after: int, until: int | None = None
) -> Iterator[tuple[LogEntry, str]]:
    """Read the entries behind a version, in order, each with its digest.

    Args:
        store: where the log lives.
        scope: whose log.
        after: the first entry read is `after + 1`.
        until: the last version to read; None goes on until one is missing.
    """
    version = after + 1
    while until is None or version <= until:
        key = scope.entry_key(version)
        try:
            data = store.get(key)
        except ObjectNotFoundError:
            return
        yield parse_entry(data, key), digest(data)
        version += 1


def first_version(store: ObjectStore, scope: Scope) -> int:
    """Version of the oldest entry that is kept, 0 if there is no log."""
    names = store.list_names(join_key(scope.folder, "log"))
    return int(names[0].partition(".")[0]) if names else 0


def _document_uuids(store: ObjectStore, scope: Scope) -> list[str]:
    prefix = f"{scope.name}++" if scope.kind == "cube" else scope.name
    return [uuid for uuid in list_documents(store, prefix) if scope.owns(uuid)]


def _document_bytes(store: ObjectStore, uuid: str) -> bytes:
    try:
        return store.get(document_key(uuid))
    except ObjectNotFoundError:
        return store.get(msgpack_document_key(uuid))


def _stamp(store: ObjectStore, uuid: str) -> Stamp | None:
    try:
        return read_stamp(store.get_range(document_key(uuid), 0, _STAMP_BYTES))
    except ObjectNotFoundError:
        return None  # only the msgpack form exists, which is never ours


def _find_head(store: ObjectStore, scope: Scope, hint: int) -> tuple[int, LogEntry | None, str]:
    """Walk from the hinted version to the newest entry; without a hint, ask the listing."""
    if hint == 0:
        names = store.list_names(join_key(scope.folder, "log"))
        if not names:
            return 0, None, ""
        hint = int(names[-1].partition(".")[0])
    found: tuple[int, LogEntry | None, str] = (0, None, "")
    for entry, sha256 in read_entries(store, scope, hint - 1):
        found = (entry.version, entry, sha256)
    if found[0] == 0:
        raise ForeignWriterError(
            f"{scope} of {store.url}: a published document names version {hint}, but log entry "
            f"{scope.entry_key(hint)} is missing. Restore the folder {scope.folder} from a backup; "
            "nothing was written."
        )
    return found


def _classify(
    store: ObjectStore,
    scope: Scope,
    uuid: str,
    documents: Mapping[str, Stamp | None],
    head: LogEntry | None,
) -> DatasetState:
    """Judge one dataset by its document's stamp (commit.md, Foreign writers)."""
    entry = head.datasets.get(uuid) if head else None
    if uuid not in documents:
        return _without_document(store, scope, uuid, head)
    stamp = documents[uuid]
    if stamp is not None:
        return DatasetState(uuid, entry, stamp)
    foreign = digest(_document_bytes(store, uuid))
    if entry is not None and entry.adopted == foreign:
        return DatasetState(uuid, entry, None)  # taken over, but not published yet
    base = load_document(store, uuid).metadata.get("ktk_base")
    expected = entry.commit if entry else ""
    if (str(base).partition(":")[2] if base else "") == expected:
        return DatasetState(uuid, entry, None, foreign=foreign)
    based_on = f"version {str(base).partition(':')[0]}" if base else "no version of the log"
    known = f"version {entry.version}" if entry else "no such dataset"
    problem = (
        f"Dataset {uuid} of {store.url} was changed by another program: its document is based on "
        f"{based_on}, the log has {known}. Nothing was written. To drop both and build it anew, "
        f"run: {_removal(scope, uuid)}"
    )
    return DatasetState(uuid, entry, None, problem=problem)


def _without_document(
    store: ObjectStore, scope: Scope, uuid: str, head: LogEntry | None
) -> DatasetState:
    """A dataset of the log that is not published: not yet, or no more?"""
    assert head is not None  # it came from the log
    entry = head.datasets[uuid]
    waits_for_seed = scope.kind == "cube" and not any(
        item.role == "seed" for item in head.datasets.values()
    )
    if waits_for_seed or store.list_names(join_key(scope.folder, "intent")):
        return DatasetState(uuid, entry, None)
    problem = (
        f"Dataset {uuid} of {store.url}: its document {document_key(uuid)} was removed by another "
        f"program, the log has version {entry.version}. Nothing was written. If the removal was "
        f"meant, run: {_removal(scope, uuid)}"
    )
    return DatasetState(uuid, entry, None, problem=problem)


def _removal(scope: Scope, uuid: str) -> str:
    if scope.kind == "cube":
        return f"ktk remove {scope.name} {scope.dataset_id(uuid)}"
    return f"ktk remove {uuid}"
