"""One dataset of a scope as resolved: who wrote its document, and what follows from that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ktk_engine.cube.dataset_uuid import cube_and_dataset
from ktk_engine.errors import (
    DatasetNotFoundError,
    ForeignWriterError,
    FormatError,
    InvalidKeyError,
    KtkError,
    ObjectNotFoundError,
    UnsupportedFormatError,
)
from ktk_engine.format.dataset_key import document_key
from ktk_engine.format.document import DatasetDocument
from ktk_engine.format.load_document import document_bytes, load_document
from ktk_engine.format.stamp import BASE_KEY, STAMP_BYTES, Stamp, digest, read_stamp
from ktk_engine.log.entry import DatasetEntry, LogEntry
from ktk_engine.log.foreign import has_files_of
from ktk_engine.log.scope import LogScope
from ktk_engine.messages import Message, Remedy, joined
from ktk_engine.snapshot.stored_snapshot import read_snapshot
from ktk_engine.store.interface import ObjectStore

_READ_FROM_LOG = "It is read as the log has it. "


@dataclass(frozen=True)
class DatasetState:
    """One dataset of a scope, as resolved."""

    uuid: str
    entry: DatasetEntry | None  # None if the log does not know the dataset
    stamp: Stamp | None  # None if there is no document of this library
    document: str = ""  # SHA-256 of another program's document; else empty
    # SHA-256 of a document that another program wrote on top of `entry`, or without any log. Its
    # content is then the truth; if this is empty, the log is.
    foreign: str = ""
    # That document has exactly the files of `entry`: the log knows the rows, and only indexes and
    # metadata come from the other program.
    same_files: bool = False
    # Why nothing may be written on top; empty if nothing is wrong. Readers then get what the log
    # has, or else the document.
    problem: str = ""
    unsupported: bool = False  # the document has a form unknown to this version
    staged: bool = False  # not committed yet

    @property
    def is_readable(self) -> bool:
        """Whether the log, a sound document or a transaction knows its rows."""
        return self.entry is not None or bool(self.foreign) or self.staged

    @property
    def is_as_committed(self) -> bool:
        """Whether no other program has made, changed or removed its document."""
        return not (self.problem or self.foreign)

    @property
    def error(self) -> type[KtkError]:
        """The class of error that its problem is raised as."""
        return UnsupportedFormatError if self.unsupported else ForeignWriterError


def published_stamp(store: ObjectStore, uuid: str) -> Stamp | None:
    """Read the stamp of a published document; None if it has none, or no JSON form exists."""
    try:
        return read_stamp(store.get_range(document_key(uuid), 0, STAMP_BYTES))
    except ObjectNotFoundError:
        return None  # only the msgpack form exists, which this library never writes
    except FormatError:
        return None  # damaged; the whole document is judged below


def unstamped(
    store: ObjectStore, scope: LogScope, uuid: str, head: LogEntry | None
) -> DatasetState | None:
    """Judge a dataset whose document another program wrote.

    None if the document has vanished and the log does not have the dataset. See
    docs/design/files-and-commits.md, Foreign writers.
    """
    entries = head.datasets if head else {}
    entry = entries.get(uuid)
    try:
        _, data = document_bytes(store, uuid)
    except ObjectNotFoundError:
        return None if entry is None else without_document(store, scope, uuid, entries)
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
        return None if entry is None else without_document(store, scope, uuid, entries)
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
        Remedy.on("drop", *cube_and_dataset(uuid)),
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
    """The state of a dataset whose document is damaged or of an unknown form, and stays as it is.

    The advice to rewrite a document is given only for a damaged one that the log knows: nothing
    else may destroy a document.
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
        problem = Message(f"{said}write it again with the program that wrote it")
    else:
        problem = Message(f"{said}write it again: ", _renewal(scope, uuid, entries))
    return DatasetState(uuid, entry, None, sha256, problem=problem)


def _has_files_of(store: ObjectStore, document: DatasetDocument, entry: DatasetEntry) -> bool:
    try:
        return has_files_of(document, read_snapshot(store, entry.snapshot, entry.snapshot_sha256))
    except (FormatError, ObjectNotFoundError):
        return False  # reading the snapshot raises the error


def without_document(
    store: ObjectStore, scope: LogScope, uuid: str, entries: Mapping[str, DatasetEntry]
) -> DatasetState:
    """The state of a dataset of the log without a document: not published yet, or no longer.

    The mark is made after the first publishing. Where it is missing, the last publisher died or was
    refused, and the next commit publishes the dataset.
    """
    entry = entries[uuid]
    waits_for_seed = scope.kind == "cube" and not any(
        item.role == "seed" for item in entries.values()
    )
    if waits_for_seed or not store.exists(scope.published_key(uuid)):
        return DatasetState(uuid, entry, None)
    if store.exists(document_key(uuid)):  # published since the documents were listed
        return DatasetState(uuid, entry, published_stamp(store, uuid))
    problem = Message(
        f"Dataset {uuid} of {store.url}: its document {document_key(uuid)} was removed by another "
        f"program, the log has version {entry.version}. {_READ_FROM_LOG}If the removal was not "
        "meant, write it again: ",
        _renewal(scope, uuid, entries),
        ". If it was: ",
        Remedy.on("drop", *cube_and_dataset(uuid)),
    )
    return DatasetState(uuid, entry, None, problem=problem)


def _renewal(scope: LogScope, uuid: str, entries: Mapping[str, DatasetEntry]) -> Message:
    """How to publish what the log has of a dataset, without reading or writing a data file."""
    gone, all_of_them = Remedy.on("drop", *cube_and_dataset(uuid)), [uuid]
    if scope.kind == "cube" and entries[uuid].role == "seed" and len(entries) > 1:
        gone = Remedy("drop_seed", name=scope.name, dataset=scope.dataset_id(uuid))
        all_of_them += sorted(set(entries) - {uuid})
    back = (Remedy.on("undrop", *cube_and_dataset(each)) for each in all_of_them)
    return joined(", and then ", [gone, *back])
