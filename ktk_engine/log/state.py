"""Resolves what a scope holds: its log's head, its documents, and who changed them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from ktk_engine.cube.dataset_uuid import cube_and_dataset
from ktk_engine.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    DatasetNotFoundError,
    ForeignWriterError,
    ForeignWriterWarning,
    FormatError,
    InvalidKeyError,
    KtkError,
    ObjectNotFoundError,
    UnsupportedFormatError,
    VersionGoneError,
)
from ktk_engine.format.dataset_key import document_key
from ktk_engine.format.document import DatasetDocument
from ktk_engine.format.load_document import document_bytes, list_documents, load_document
from ktk_engine.format.stamp import BASE_KEY, STAMP_BYTES, Stamp, read_stamp
from ktk_engine.log.chain import logged_versions, read_entries, read_entry
from ktk_engine.log.entry import DatasetEntry, LogEntry, digest, render_entry
from ktk_engine.log.foreign import has_files_of, snapshot_of_document, with_document
from ktk_engine.log.scope import LogScope
from ktk_engine.log.snapshot import Snapshot, read_snapshot
from ktk_engine.log.staged_logs import StagedLogs
from ktk_engine.messages import Message, Remedy, joined
from ktk_engine.store.ask_all import ask_all
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.joined_store import JoinedStore

_READ_FROM_LOG = "It is read as the log has it. "


@dataclass(frozen=True)
class DatasetState:
    """One dataset of a scope, as resolved.

    Attributes:
        uuid: the dataset's uuid.
        entry: where the log has it; None for a dataset that the log does not know.
        stamp: the published document's stamp; None if there is no document of ours.
        document: SHA-256 of a document of another program; empty if it is ours or missing.
        foreign: SHA-256 of a document that another program wrote on top of `entry` (or without
            any log): its content is the truth. Empty if the log is.
        same_files: whether that document has exactly the files of `entry`, so that the log
            knows its rows, and only indices and metadata are the other program's.
        problem: why nothing may be written on top; empty if all is well. What is read then is
            what the log has, or else the document.
        unsupported: whether that is a document of a form that this version does not know.
        staged: whether it is what a transaction would make of it, which is not committed yet.
    """

    uuid: str
    entry: DatasetEntry | None
    stamp: Stamp | None
    document: str = ""
    foreign: str = ""
    same_files: bool = False
    problem: str = ""
    unsupported: bool = False
    staged: bool = False

    @property
    def is_readable(self) -> bool:
        """Whether the log, a sound document or a transaction knows its rows."""
        return self.entry is not None or bool(self.foreign) or self.staged

    @property
    def error(self) -> type[KtkError]:
        """What its problem is raised as."""
        return UnsupportedFormatError if self.unsupported else ForeignWriterError


@dataclass(frozen=True)
class State:
    """A scope at one version: every reader and writer starts here.

    Threads may share it: snapshots, which never change under their keys, are loaded under a lock.

    Attributes:
        store: where it lives.
        scope: the cube or dataset.
        version: version of the head, 0 if there is no log.
        head: the newest entry, None if there is no log.
        head_sha256: digest of that entry.
        datasets: by uuid, sorted.
        unpublished_removals: documents of datasets that the log has removed, in the order in
            which they are to vanish: the seed dataset first.
        known: snapshots by key, which never change; anyone who resolves again may keep them.
        elsewhere: datasets that lie in other stores, by uuid, and their scopes there. Such a state
            is only read; see `beside`.
    """

    store: ObjectStore
    scope: LogScope
    version: int
    head: LogEntry | None
    head_sha256: str
    datasets: Mapping[str, DatasetState]
    unpublished_removals: tuple[str, ...] = ()
    known: MutableMapping[str, Snapshot] = field(default_factory=dict, compare=False, repr=False)
    elsewhere: Mapping[str, State] = field(default_factory=dict)
    _snapshots: dict[str, Snapshot] = field(default_factory=dict, compare=False, repr=False)
    _loading: threading.RLock = field(default_factory=threading.RLock, compare=False, repr=False)

    def snapshot(self, uuid: str) -> Snapshot:
        """Load the snapshot of a dataset; once per state.

        Raises:
            DatasetNotFoundError: the scope has no such dataset.
            ForeignWriterError: nobody can tell what it holds.
            UnsupportedFormatError: this version cannot tell.
            VersionGoneError: a clean-up has removed it since the state was resolved.
        """
        if uuid in self.elsewhere:
            return self.elsewhere[uuid].snapshot(uuid)
        state = self.dataset(uuid)
        with self._loading:  # a cube object may be shared by threads
            if uuid not in self._snapshots:
                with self.reading():
                    self._snapshots[uuid] = self._load(state)
            return self._snapshots[uuid]

    def dataset(self, uuid: str) -> DatasetState:
        """Give what the scope knows of a dataset that can be read.

        Raises:
            DatasetNotFoundError: the scope has no such dataset.
            ForeignWriterError: nobody can tell what it holds.
        """
        state = self.datasets.get(uuid)
        if state is None:
            raise DatasetNotFoundError(f"{self.store.url} has no dataset {uuid}.")
        if not state.is_readable:
            raise state.error(state.problem)
        if state.problem:
            # From this line, no matter who reads: Python shows a message once for each place.
            warnings.warn(state.problem, ForeignWriterWarning, stacklevel=1)
        return state

    def snapshots(self) -> dict[str, Snapshot]:
        """Load the snapshots of all datasets, by uuid."""
        return self.snapshots_except(())

    def snapshots_by_id(self) -> dict[str, Snapshot]:
        """Load the snapshots of all datasets, by their names within the scope."""
        return {self.scope.dataset_id(uuid): item for uuid, item in self.snapshots().items()}

    def snapshots_except(self, uuids: Collection[str]) -> dict[str, Snapshot]:
        """Load the snapshots of all datasets but some, by uuid."""
        wanted = [uuid for uuid in self.datasets if uuid not in uuids]
        self._read_ahead(wanted)
        return {uuid: self.snapshot(uuid) for uuid in wanted}

    def with_staged(self, snapshots: Mapping[str, Snapshot | None]) -> State:
        """Give the scope as it would be after changes that are not committed yet.

        Args:
            snapshots: the changed datasets by uuid; None for one that goes.
        """
        datasets, loaded = dict(self.datasets), dict(self._snapshots)
        for uuid, snapshot in snapshots.items():
            datasets.pop(uuid, None)
            loaded.pop(uuid, None)
            if snapshot is not None:
                datasets[uuid] = DatasetState(uuid, None, None, staged=True)
                loaded[uuid] = snapshot
        return replace(self, datasets=dict(sorted(datasets.items())), _snapshots=loaded)

    def after(self, entry: LogEntry, snapshots: Mapping[str, Snapshot]) -> State | None:
        """Give the scope with a new entry on top, without asking the store again.

        Args:
            entry: what was put right after this version.
            snapshots: of the datasets that it changed, by uuid.

        Returns:
            None where only the store can tell: something was removed, another program wrote
            here, or the entry is staged.
        """
        foreign = any(i.foreign or i.document or i.problem for i in self.datasets.values())
        if self.elsewhere or self.store.is_staged or foreign:
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

    def stamped(self, uuid: str, stamp: Stamp) -> State:
        """The same after a document of it was published."""
        item = replace(self.datasets[uuid], stamp=stamp)
        return replace(self, datasets={**self.datasets, uuid: item})

    def beside(self, others: Mapping[str, State]) -> State:
        """Give the scope with datasets of other stores beside its own, to be read together.

        Args:
            others: uuid -> the dataset's scope in the store where it lies; its own dataset of
                this name, if there is one, is not seen.

        Raises:
            DatasetNotFoundError: a dataset is not there (any more).
        """
        if not others:
            return self
        found = {uuid: state.dataset(uuid) for uuid, state in others.items()}
        return replace(
            self,
            store=JoinedStore(self.store, {uuid: item.store for uuid, item in others.items()}),
            datasets=dict(sorted({**self.datasets, **found}.items())),
            elsewhere=dict(others),
        )

    def holding(self, uuid: str) -> State:
        """Give the scope of the store in which a dataset lies: mostly this one."""
        return self.elsewhere.get(uuid, self)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Run a block that reads files of this version, which a clean-up may remove meanwhile.

        Whatever fails in the block for that reason fails as one error; other errors stay.

        Raises:
            VersionGoneError: the block failed, and a clean-up has removed files of this version.
        """
        try:
            yield
        except (CommitConflictError, CommitStateUnknownError, VersionGoneError):
            raise
        except Exception as error:
            found = ((item, item._cleaned_by()) for item in (self, *self.elsewhere.values()))
            state, cleaned = next(((item, by) for item, by in found if by), (self, 0))
            if not cleaned:
                raise
            raise VersionGoneError(
                Message(
                    f"{state.scope} of {state.store.url}: version {state.version} was cleaned up "
                    f"while it was read (by version {cleaned}). Run it again to read the newest "
                    "version. A clean-up spares readers as long as its ",
                    Remedy("older_than"),
                    " says.",
                )
            ) from error

    def _cleaned_by(self) -> int:
        """The version whose clean-up has given up files of this one; 0 if none has.

        The data files of a version never go before its snapshots do, unless other snapshots build
        on these: of what was loaded, all files count.
        """
        own = (item for uuid, item in self.datasets.items() if uuid not in self.elsewhere)
        entries = [item.entry for item in own if item.entry]
        needed = frozenset[str]().union(*(entry.snapshots for entry in entries))
        loaded = list(self._snapshots.values())
        try:
            for entry, _ in read_entries(self.store, self.scope, self.version):
                gone = frozenset(entry.deleted)
                if needed & gone or any(snapshot.refers_to(gone) for snapshot in loaded):
                    return entry.version
        except KtkError:
            pass  # what went wrong first says more
        return 0

    def _read_ahead(self, uuids: Collection[str]) -> None:
        """Read the snapshots of datasets that are not known yet, from a remote store at once."""
        unread = [uuid for uuid in uuids if uuid not in {**self._snapshots, **self.elsewhere}]
        entries = [self.datasets[uuid].entry for uuid in unread]
        digests = {item.snapshot: item.snapshot_sha256 for item in entries if item is not None}
        missing = [key for key in digests if key not in self.known]
        if not self.store.is_remote or len(missing) < 2:
            return
        with suppress(KtkError):  # who reads that one is told
            found = ask_all(
                self.store, lambda key: read_snapshot(self.store, key, digests[key]), missing
            )
            self.known.update(zip(missing, found, strict=True))

    def _load(self, state: DatasetState) -> Snapshot:
        if state.entry is None or (state.foreign and not state.same_files):
            found = snapshot_of_document(self.store, load_document(self.store, state.uuid))
            return found if state.entry is None else self._with_publishing(found, state.entry)
        key = state.entry.snapshot
        if key not in self.known:
            self.known[key] = read_snapshot(self.store, key, state.entry.snapshot_sha256)
        if state.same_files:
            return with_document(self.known[key], load_document(self.store, state.uuid))
        return self.known[key]

    def _with_publishing(self, found: Snapshot, entry: DatasetEntry) -> Snapshot:
        """What another program wrote is published as what it wrote on top of was."""
        try:
            before = read_snapshot(self.store, entry.snapshot, entry.snapshot_sha256)
        except (FormatError, ObjectNotFoundError):
            return found  # anyone who reads that one is told
        return found.published_like(before)


def resolve(store: ObjectStore, scope: LogScope) -> State:
    """Find a scope's head and compare it with the published documents.

    Costs two shallow listings, the first kilobyte of each document and the head entry. Nothing
    is written.

    Raises:
        StoreError: the store could not tell.
        FormatError: the newest log entry is damaged, or missing although a document names it.
    """
    if isinstance(store, StagedLogs) and (since := store.staged_since(scope)):
        return _staged_head(store, scope, since)
    uuids = _document_uuids(store, scope)
    stamps = ask_all(store, lambda uuid: _stamp(store, uuid), uuids)
    documents = dict(zip(uuids, stamps, strict=True))
    version, head, sha256 = _find_head(store, scope, documents)
    entries: Mapping[str, DatasetEntry] = head.datasets if head else {}
    datasets: dict[str, DatasetState] = {}
    removals: list[str] = []
    for uuid in sorted({*documents, *entries}):
        found: DatasetState | None
        if uuid not in documents:
            found = _without_document(store, scope, uuid, entries)
        elif (stamp := documents[uuid]) is not None:
            found = DatasetState(uuid, entries.get(uuid), stamp)
        else:
            found = _unstamped(store, scope, uuid, head)
        if found is None:
            continue  # removed while we looked
        if found.stamp is not None and found.stamp.version > version:
            return resolve(store, scope)  # committed and published while we looked
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
    return State(store, scope, head.version, head, sha256, datasets, known=store.known)


def _document_uuids(store: ObjectStore, scope: LogScope) -> list[str]:
    prefix = scope.uuid_of("") if scope.kind == "cube" else scope.name
    return [uuid for uuid in list_documents(store, prefix) if scope.owns(uuid)]


def _stamp(store: ObjectStore, uuid: str) -> Stamp | None:
    try:
        return read_stamp(store.get_range(document_key(uuid), 0, STAMP_BYTES))
    except ObjectNotFoundError:
        return None  # only the msgpack form exists, which is never ours
    except FormatError:
        return None  # damaged; the whole document is judged below


def _find_head(
    store: ObjectStore, scope: LogScope, documents: Mapping[str, Stamp | None]
) -> tuple[int, LogEntry | None, str]:
    """Find the newest entry. A listing shows it also where one before it is missing."""
    stamps = {uuid: stamp.version for uuid, stamp in documents.items() if stamp is not None}
    published = max(stamps.values(), default=0)
    versions = logged_versions(store, scope, published)
    if versions:
        entry, sha256 = read_entry(store, scope, versions[-1])
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
    """Whether a document that the log does not have is a rest of a dataset it has removed."""
    if found.stamp is not None:
        return True
    return head is not None and head.removed.get(found.uuid, "") == found.document


def _unstamped(
    store: ObjectStore, scope: LogScope, uuid: str, head: LogEntry | None
) -> DatasetState | None:
    """Judge a dataset whose document is another program's.

    See docs/design/files-and-commits.md, Foreign writers.

    Returns:
        None if the document has vanished, and the log does not have the dataset.
    """
    entries = head.datasets if head else {}
    entry = entries.get(uuid)
    try:
        _, data = document_bytes(store, uuid)
    except ObjectNotFoundError:
        return None if entry is None else _without_document(store, scope, uuid, entries)
    except FormatError as error:
        return _unreadable(store, scope, uuid, entries, error)
    sha256 = digest(data)
    try:
        stamp = read_stamp(data)
        if stamp is not None:  # published since the documents were listed
            return DatasetState(uuid, entry, stamp)
        if entry is not None and entry.adopted == sha256:
            return DatasetState(uuid, entry, None, sha256)  # taken over, but not published yet
        document = load_document(store, uuid)
    except (FormatError, InvalidKeyError) as error:
        return _unreadable(store, scope, uuid, entries, error, sha256)
    except DatasetNotFoundError:
        return None if entry is None else _without_document(store, scope, uuid, entries)
    if entry is not None and _has_files_of(store, document, entry):
        return DatasetState(uuid, entry, None, sha256, foreign=sha256, same_files=True)
    base = str(document.metadata.get(BASE_KEY) or "")
    if head is None or base.partition(":")[2] == (entry.commit if entry else ""):
        return DatasetState(uuid, entry, None, sha256, foreign=sha256)
    based_on = f"version {base.partition(':')[0]}" if base else "no version of the log"
    known = f"version {entry.version}" if entry else "no such dataset"
    reading = _READ_FROM_LOG if entry else "It is read as that document has it. "
    problem = Message(
        f"Dataset {uuid} of {store.url} was changed by another program: its document is based on "
        f"{based_on}, the log has {known}. {reading}Nothing can be written until it is clear "
        "which of the two counts. To see what the other program changed, and to take that over: ",
        Remedy("look_at_adoption", name=scope.name),
        ". To drop both and rebuild it: ",
        Remedy.drop(*cube_and_dataset(uuid)),
    )
    return DatasetState(uuid, entry, None, sha256, foreign="" if entry else sha256, problem=problem)


def _unreadable(
    store: ObjectStore,
    scope: LogScope,
    uuid: str,
    entries: Mapping[str, DatasetEntry],
    error: KtkError,
    sha256: str = "",
) -> DatasetState:
    """A dataset whose document is damaged, or of a form that is unknown here: that stays as it is.

    Of what the log knows, a damaged document is written anew; nothing else is ever advised that
    would destroy one.
    """
    entry = entries.get(uuid)
    known = _READ_FROM_LOG if entry else ""
    where = f"The document of dataset {uuid} in {store.url}"
    if isinstance(error, UnsupportedFormatError):
        problem = Message(
            f"{where} is not supported: {error}. {known}Another program, or a later release of "
            f"this one, may read it; here it stays as it is"
        )
        return DatasetState(uuid, entry, None, sha256, problem=problem, unsupported=True)
    said = f"{where} is damaged: {error}. {known}Restore the file from a backup, or "
    if entry is None:
        problem = Message(f"{said}write it anew with the program that wrote it")
    else:
        problem = Message(f"{said}write it anew: ", _renewal(scope, uuid, entries))
    return DatasetState(uuid, entry, None, sha256, problem=problem)


def _has_files_of(store: ObjectStore, document: DatasetDocument, entry: DatasetEntry) -> bool:
    try:
        return has_files_of(document, read_snapshot(store, entry.snapshot, entry.snapshot_sha256))
    except (FormatError, ObjectNotFoundError):
        return False  # anyone who reads the snapshot is told


def _without_document(
    store: ObjectStore, scope: LogScope, uuid: str, entries: Mapping[str, DatasetEntry]
) -> DatasetState:
    """A dataset of the log that is not published: not yet, or no more?

    The mark is made after the first publishing. Where it is missing, the last publisher died or was
    refused, and the next commit publishes it.
    """
    entry = entries[uuid]
    waits_for_seed = scope.kind == "cube" and not any(
        item.role == "seed" for item in entries.values()
    )
    if waits_for_seed or not store.exists(scope.published_key(uuid)):
        return DatasetState(uuid, entry, None)
    if store.exists(document_key(uuid)):  # published since the documents were listed
        return DatasetState(uuid, entry, _stamp(store, uuid))
    problem = Message(
        f"Dataset {uuid} of {store.url}: its document {document_key(uuid)} was removed by another "
        f"program, the log has version {entry.version}. {_READ_FROM_LOG}If the removal was not "
        "meant, write it anew: ",
        _renewal(scope, uuid, entries),
        ". If it was: ",
        Remedy.drop(*cube_and_dataset(uuid)),
    )
    return DatasetState(uuid, entry, None, problem=problem)


def _renewal(scope: LogScope, uuid: str, entries: Mapping[str, DatasetEntry]) -> Message:
    """How to publish what the log has of a dataset; no data file is read or written."""
    gone, all_of_them = Remedy.drop(*cube_and_dataset(uuid)), [uuid]
    if scope.kind == "cube" and entries[uuid].role == "seed" and len(entries) > 1:
        gone = Remedy("drop_seed", name=scope.name, dataset=scope.dataset_id(uuid))
        all_of_them += sorted(set(entries) - {uuid})
    back = (Remedy.undrop(*cube_and_dataset(each)) for each in all_of_them)
    return joined(", and then ", [gone, *back])
