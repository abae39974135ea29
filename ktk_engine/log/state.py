"""Resolves what a scope holds: the head of its log, its documents, and who changed them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

from ktk_engine.cube.discovery import discover_cube
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    DatasetNotFoundError,
    ForeignWriterError,
    ForeignWriterWarning,
    FormatError,
    KtkError,
    ObjectNotFoundError,
    VersionGoneError,
)
from ktk_engine.format.dataset_key import document_key
from ktk_engine.format.load_document import list_documents, load_document
from ktk_engine.format.stamp import Stamp, digest
from ktk_engine.log.chain import logged_versions, newest_version, read_entries, read_entry
from ktk_engine.log.dataset_state import DatasetState, published_stamp, unstamped, without_document
from ktk_engine.log.entry import DatasetEntry, LogEntry, render_entry
from ktk_engine.log.foreign import snapshot_of_document, with_document
from ktk_engine.log.scope import LogScope
from ktk_engine.log.staged_logs import StagedLogs
from ktk_engine.messages import Remedy
from ktk_engine.snapshot.file_segments import SegmentedFiles
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.snapshot.stored_files import FileTable
from ktk_engine.snapshot.stored_snapshot import read_snapshot
from ktk_engine.store.ask_all import ask_all
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.joined_store import JoinedStore


@dataclass(frozen=True)
class State:
    """A scope at one version: every reader and writer starts here.

    Threads may share it: snapshots, which never change under their keys, are loaded under a lock.
    """

    store: ObjectStore
    scope: LogScope
    version: int  # of the head; 0 without a log
    head: LogEntry | None  # the newest entry; None without a log
    head_sha256: str
    datasets: Mapping[str, DatasetState]  # by uuid, sorted
    # Datasets removed from the log whose documents still have to vanish, the seed dataset first.
    unpublished_removals: tuple[str, ...] = ()
    # Snapshots by key, which never change, so that a later `resolve` may keep them.
    snapshot_cache: MutableMapping[str, Snapshot] = field(
        default_factory=dict, compare=False, repr=False
    )
    # Datasets in other stores, by uuid, with their scopes there. Such a state is only read; see
    # `joined_with`.
    external: Mapping[str, State] = field(default_factory=dict)
    _snapshots: dict[str, Snapshot] = field(default_factory=dict, compare=False, repr=False)
    _loading: threading.RLock = field(default_factory=threading.RLock, compare=False, repr=False)

    def snapshot(self, uuid: str) -> Snapshot:
        """Load the snapshot of a dataset, once per state.

        Raises a `DatasetNotFoundError`, a `ForeignWriterError` or `UnsupportedFormatError` if what
        it holds is unknown here, and a `VersionGoneError` if a clean-up has removed it since.
        """
        if uuid in self.external:
            return self.external[uuid].snapshot(uuid)
        state = self.dataset(uuid)
        with self._loading:  # a cube object may be shared by threads
            if uuid not in self._snapshots:
                with self.reading():
                    self._snapshots[uuid] = self._load(state)
            return self._snapshots[uuid]

    def dataset(self, uuid: str) -> DatasetState:
        """What the scope knows about a readable dataset.

        Raises a `DatasetNotFoundError` if there is none, and a `ForeignWriterError` if it is not
        readable.
        """
        state = self.datasets.get(uuid)
        if state is None:
            raise DatasetNotFoundError(f"{self.store.url} has no dataset {uuid}.")
        if not state.is_readable:
            raise state.error(state.problem)
        if state.problem:
            # Warn from this line for every reader: Python shows a message once per place.
            warnings.warn(state.problem, ForeignWriterWarning, stacklevel=1)
        return state

    def snapshots(self) -> dict[str, Snapshot]:
        """Load the snapshots of all datasets, by uuid."""
        return self.snapshots_except(())

    def snapshots_by_id(self) -> dict[str, Snapshot]:
        """Load the snapshots of all datasets, by their names within the scope."""
        return {self.scope.dataset_id(uuid): item for uuid, item in self.snapshots().items()}

    @cached_property
    def cube(self) -> CubeSpecification:
        """The cube's specification; raises a `ConsistencyError` as `discover_cube` does."""
        return discover_cube(self.scope.name, self.snapshots_by_id())

    def snapshots_except(self, uuids: Collection[str]) -> dict[str, Snapshot]:
        """Load the snapshots of all datasets but some, by uuid."""
        wanted = [uuid for uuid in self.datasets if uuid not in uuids]
        self._read_ahead(wanted)
        return {uuid: self.snapshot(uuid) for uuid in wanted}

    @property
    def changed_by_others(self) -> list[str]:
        """The datasets that other programs have made or changed."""
        return [uuid for uuid, item in self.datasets.items() if not item.is_as_committed]

    def with_staged(self, snapshots: Mapping[str, Snapshot | None]) -> State:
        """The scope as it would be after uncommitted changes; None removes a dataset."""
        datasets, loaded = dict(self.datasets), dict(self._snapshots)
        for uuid, snapshot in snapshots.items():
            datasets.pop(uuid, None)
            loaded.pop(uuid, None)
            if snapshot is not None:
                datasets[uuid] = DatasetState(uuid, None, None, staged=True)
                loaded[uuid] = snapshot
        return replace(self, datasets=dict(sorted(datasets.items())), _snapshots=loaded)

    def after(self, entry: LogEntry, snapshots: Mapping[str, Snapshot]) -> State | None:
        """The scope with a new entry on top, without a request to the store.

        None where only the store can tell: a dataset was removed, another program wrote here, or
        the entry is staged.
        """
        foreign = any(i.foreign or i.document or i.problem for i in self.datasets.values())
        if self.external or self.store.is_staged or foreign:
            return None
        if self.unpublished_removals or entry.removed:
            return None
        stamps = {uuid: item.stamp for uuid, item in self.datasets.items()}
        datasets = {
            uuid: DatasetState(uuid, item, stamps.get(uuid))
            for uuid, item in entry.datasets.items()
        }
        kept = {uuid: item for uuid, item in self._snapshots.items() if uuid in datasets}
        return replace(
            self,
            version=entry.version,
            head=entry,
            head_sha256=digest(render_entry(entry)),
            datasets=datasets,
            _snapshots={**kept, **snapshots},
            _loading=threading.RLock(),
        )

    def stamped(self, uuid: str, stamp: Stamp | None) -> State:
        """The scope after a document of a dataset was published, or withdrawn."""
        item = replace(self.datasets[uuid], stamp=stamp)
        return replace(self, datasets={**self.datasets, uuid: item})

    def joined_with(self, others: Mapping[str, State]) -> State:
        """The scope with datasets of other stores, to be read together with its own.

        A dataset of `others` hides the scope's own one of the same uuid. Raises a
        `DatasetNotFoundError` if one is gone.
        """
        if not others:
            return self
        found = {uuid: state.dataset(uuid) for uuid, state in others.items()}
        return replace(
            self,
            store=JoinedStore(self.store, {uuid: item.store for uuid, item in others.items()}),
            datasets=dict(sorted({**self.datasets, **found}.items())),
            external=dict(others),
        )

    def holding(self, uuid: str) -> State:
        """The scope of the store that holds a dataset: mostly this one."""
        return self.external.get(uuid, self)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Run a block that reads files of this version, which a clean-up may remove meanwhile.

        An error in the block becomes a `VersionGoneError` if a clean-up has removed files of this
        version; other errors stay.
        """
        try:
            yield
        except (CommitConflictError, CommitStateUnknownError, VersionGoneError):
            raise
        except Exception as error:
            found = ((item, item._cleaned_by()) for item in (self, *self.external.values()))
            state, cleaned = next(((item, by) for item, by in found if by), (self, 0))
            if not cleaned:
                raise
            raise VersionGoneError(
                f"{state.scope} of {state.store.url}: version {state.version} was cleaned up "
                f"while it was read (by version {cleaned}). Run it again to read the newest "
                "version. A clean-up spares readers as long as its ",
                Remedy("older_than"),
                " says.",
            ) from error

    def _cleaned_by(self) -> int:
        """The version whose clean-up has given up files of this one; 0 if none has.

        A version's data files never go before its snapshots do, unless another version needs those.
        So all files of loaded snapshots count.
        """
        own = (item for uuid, item in self.datasets.items() if uuid not in self.external)
        entries = [item.entry for item in own if item.entry]
        needed = frozenset(entry.snapshot for entry in entries)
        loaded = list(self._snapshots.values())
        try:
            later = [entry for entry, _ in read_entries(self.store, self.scope, self.version)]
            # Roots first: `named_among` may have to read segments, which went with the snapshot.
            for entry in later:
                if needed & frozenset(entry.deleted):
                    return entry.version
            for entry in later:
                gone = frozenset(entry.deleted)
                if gone and any(snapshot.named_among(gone) for snapshot in loaded):
                    return entry.version
        except KtkError:
            pass  # the first error says more
        return 0

    def foreign_document(self, uuid: str) -> str:
        """Digest of another program's document that a dataset is read from; empty if none is."""
        return self.datasets[uuid].foreign if uuid in self.datasets else ""

    def stored_snapshot(self, entry: DatasetEntry) -> Snapshot:
        """Load what the log has of a dataset in some version, and remember it.

        Raises an `ObjectNotFoundError`, a `FormatError` for damage, and an `UnsupportedFormatError`
        for a newer format.
        """
        key = entry.snapshot
        if key not in self.snapshot_cache:
            self.snapshot_cache[key] = self._read(key, entry.snapshot_sha256)
        return self.snapshot_cache[key]

    def _read_ahead(self, uuids: Collection[str]) -> None:
        """Load the unknown snapshots of some datasets, from a remote store in parallel."""
        unread = [uuid for uuid in uuids if uuid not in {**self._snapshots, **self.external}]
        entries = [self.datasets[uuid].entry for uuid in unread]
        digests = {item.snapshot: item.snapshot_sha256 for item in entries if item is not None}
        missing = [key for key in digests if key not in self.snapshot_cache]
        if not self.store.is_remote or len(missing) < 2:
            return
        with suppress(KtkError):  # reading that one raises the error
            found = ask_all(self.store, lambda key: self._read(key, digests[key]), missing)
            self.snapshot_cache.update(zip(missing, found, strict=True))

    def _load(self, state: DatasetState) -> Snapshot:
        if state.entry is None or (state.foreign and not state.same_files):
            found = snapshot_of_document(self.store, load_document(self.store, state.uuid))
            return found if state.entry is None else self._with_publishing(found, state.entry)
        stored = self.stored_snapshot(state.entry)
        if state.same_files:
            return with_document(stored, load_document(self.store, state.uuid))
        return stored

    def _read(self, key: str, sha256: str) -> Snapshot:
        """Load a snapshot without reading again the segments that it shares with cached ones."""
        segments: dict[str, FileTable] = {}
        for snapshot in self.snapshot_cache.values():
            if isinstance(snapshot.file_table, SegmentedFiles):
                segments |= snapshot.file_table.reader.tables
        return read_snapshot(self.store, key, sha256, segments)

    def _with_publishing(self, found: Snapshot, entry: DatasetEntry) -> Snapshot:
        """A snapshot that another program's document led to, published as the one before it was."""
        try:
            before = read_snapshot(self.store, entry.snapshot, entry.snapshot_sha256)
        except (FormatError, ObjectNotFoundError):
            return found  # reading that one raises the error
        return found.published_like(before)


def resolve(store: ObjectStore, scope: LogScope, published: Collection[str] | None = None) -> State:
    """Find a scope's head and compare it with the published documents; writes nothing.

    Costs two shallow listings, the first kilobyte of each document, and the head entry. `published`
    are datasets of the scope that have a document, from one listing of the whole store if many
    scopes are resolved; None lists them. Raises a `FormatError` if the newest entry is damaged, or
    missing although a document names it.
    """
    if isinstance(store, StagedLogs) and (since := store.staged_since(scope)):
        return _staged_head(store, scope, since)
    listed = _documents(store, scope) if published is None else published
    uuids = [uuid for uuid in listed if scope.owns(uuid)]
    stamps = ask_all(store, lambda uuid: published_stamp(store, uuid), uuids)
    documents = dict(zip(uuids, stamps, strict=True))
    version, head, sha256 = _find_head(store, scope, documents)
    entries: Mapping[str, DatasetEntry] = head.datasets if head else {}
    datasets: dict[str, DatasetState] = {}
    removals: list[str] = []
    for uuid in sorted({*documents, *entries}):
        found: DatasetState | None
        if uuid not in documents:
            found = without_document(store, scope, uuid, entries)
        elif (stamp := documents[uuid]) is not None:
            found = DatasetState(uuid, entries.get(uuid), stamp)
        else:
            found = unstamped(store, scope, uuid, head)
        if found is None:
            continue  # removed meanwhile
        if found.stamp is not None and found.stamp.version > version:
            return resolve(store, scope)  # committed and published meanwhile
        if uuid in entries or not _is_removed(found, head):
            datasets[uuid] = found
        else:
            removals.append(uuid)
    order = list(head.removed) if head else []
    removals.sort(key=lambda uuid: order.index(uuid) if uuid in order else len(order))
    return State(store, scope, version, head, sha256, datasets, tuple(removals))


def _staged_head(store: StagedLogs, scope: LogScope, since: int) -> State:
    """What the commits of a staged run have made of a scope; they publish no documents."""
    head, sha256 = read_entry(store, scope, logged_versions(store, scope, since)[-1])
    datasets = {uuid: DatasetState(uuid, entry, None) for uuid, entry in head.datasets.items()}
    return State(
        store, scope, head.version, head, sha256, datasets, snapshot_cache=store.snapshot_cache
    )


def _documents(store: ObjectStore, scope: LogScope) -> list[str]:
    return list_documents(store, scope.uuid_of("") if scope.kind == "cube" else scope.name)


def _find_head(
    store: ObjectStore, scope: LogScope, documents: Mapping[str, Stamp | None]
) -> tuple[int, LogEntry | None, str]:
    """Find the newest entry; a listing finds it even where one before it is missing."""
    stamps = {uuid: stamp.version for uuid, stamp in documents.items() if stamp is not None}
    published = max(stamps.values(), default=0)
    newest = newest_version(store, scope, published)
    if newest:
        entry, sha256 = read_entry(store, scope, newest)
        return entry.version, entry, sha256
    if published == 0:
        return 0, None, ""
    uuid = max(stamps, key=lambda uuid: stamps[uuid])
    raise ForeignWriterError(
        f"The document {document_key(uuid)} of {store.url} names version {published}, but log "
        f"entry {scope.entry_key(published)} is missing. One of the two is damaged: restore it "
        "from a backup. Nothing was written."
    )


def _is_removed(found: DatasetState, head: LogEntry | None) -> bool:
    """Whether a document that the log does not have is left over from a removed dataset."""
    if found.stamp is not None:
        return True
    return head is not None and head.removed.get(found.uuid, "") == found.document
