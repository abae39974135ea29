"""Publishes the head as plain Kartothek files, for any old reader, and in other forms.

See docs/design/files-and-commits.md, Publishing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from ktk_engine.cube.user_metadata import (
    IS_SEED,
    SPECIFICATION_KEYS,
    SUPPRESS_INDEX_ON,
    cube_value,
)
from ktk_engine.errors import (
    ForeignWriterError,
    FormatError,
    KtkError,
    ObjectExistsError,
    ObjectNotFoundError,
    TokenMismatchError,
)
from ktk_engine.format.common_metadata import render_common_metadata
from ktk_engine.format.dataset_key import (
    TABLE,
    common_metadata_key,
    document_key,
    msgpack_document_key,
)
from ktk_engine.format.document import DatasetDocument, render_partitions, render_stamped
from ktk_engine.format.stamp import digest, read_stamp
from ktk_engine.log.commit import Committed
from ktk_engine.log.entry import DatasetEntry, LogEntry
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import State, resolve
from ktk_engine.messages import Message, joined
from ktk_engine.publish.published_forms import drop_forms, publish_forms
from ktk_engine.publish.published_indices import published_indices, too_large
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore

_LOGGER = logging.getLogger(__name__)
_RETRIES = 10


@dataclass(frozen=True)
class Behind:
    """Why the published forms of a scope are behind its head; empty where they are not."""

    documents: str = ""  # those of Kartothek
    others: str = ""  # Delta logs and Iceberg metadata

    @property
    def warning(self) -> str:
        """Both reasons."""
        return _all((self.documents, self.others))


def publish(done: Committed) -> Committed:
    """Bring the published forms of a scope up to a commit, or to a later one.

    A failure, even a bug, becomes a warning, never an error: the commit remains, and the next
    writer publishes it.
    """
    store, scope = done.head.store, done.head.scope
    expired_keys = done.entry.deleted
    behind, state = _publish(
        store, scope, done.state, done.head.snapshot_cache, done.removed, expired_keys
    )
    return replace(done, warning=behind.warning, state=state)


def publish_head(store: ObjectStore, scope: LogScope) -> Behind:
    """Bring the published forms of a scope up to its head; returns why some are behind."""
    return _publish(store, scope, None, None, (), ())[0]


def _publish(
    store: ObjectStore,
    scope: LogScope,
    state: State | None,
    snapshots: Mapping[str, Snapshot] | None,
    removed: Collection[str],
    expired_keys: Collection[str],
) -> tuple[Behind, State | None]:
    """Publish all forms; returns which are behind, and the published scope if it is known.

    Kartothek's documents of enrichments come first and that of the seed dataset last, so that an
    old reader never meets a seed whose enrichments it cannot see. Removed datasets vanish in the
    opposite order. A cube without a seed dataset publishes nothing, and what another program wrote
    since stays. `snapshots` are those of datasets whose forms may be behind, by key; None means
    all.
    """
    if store.is_staged:
        return Behind(), state  # staged: not public yet
    documents: list[str] = []
    others: list[str] = []
    with _as_warning(scope, documents, "not published for Kartothek readers yet"):
        state = state or resolve(store, scope)
        state.snapshot_cache.update(snapshots or {})
        if gone := set(removed).difference(state.datasets):
            store.delete([scope.computed_key(uuid) for uuid in sorted(gone)])
        state = _publish_removals(drop_forms(state, removed))
        state.snapshot_cache.update(snapshots or {})
        for uuid in _order(state):
            if not declines_documents(state):  # the published state may be newer
                state = _publish_dataset(state, uuid)
        if declines_documents(state):
            state = _withdraw_documents(state)
        if troubled := [uuid for uuid, item in state.datasets.items() if item.problem]:
            names = ", ".join(troubled)
            documents.append(f"committed; another program changed {names}, which stay as they are")
    if state is not None:
        if snapshots is None:
            with _as_warning(scope, others, "perhaps not published in other formats"):
                state.snapshots_except(
                    [
                        uuid
                        for uuid, item in state.datasets.items()
                        if item.entry is None or not item.is_as_committed
                    ]
                )
        with _as_warning(scope, others, "not published in other formats yet"):
            others.append(publish_forms(state, expired_keys))
    return Behind(_all(documents), _all(others)), state


@contextmanager
def _as_warning(scope: LogScope, warnings: list[str], how: str) -> Iterator[None]:
    """Log what fails in a block and add it to the warnings: the commit remains."""
    try:
        yield
    except KtkError as error:
        _LOGGER.warning("%s is committed, but %s: %s", scope, how, error)
        warnings.append(Message(f"committed, but {how}: ", error))
    except Exception as error:
        _LOGGER.exception("%s is committed, but %s", scope, how)
        warnings.append(f"committed, but {how}: {error!r}")


def _all(warnings: Iterable[str]) -> Message:
    return joined("; ", filter(None, warnings))


def _publish_removals(state: State) -> State:
    """Delete the documents of removed datasets; returns the state to publish.

    A store cannot delete by compare-and-swap. So if a dataset was built again meanwhile and the
    deleted document was the new one, it is published again.
    """
    removals = state.unpublished_removals
    if not removals:
        return state
    for uuid in removals:
        _delete_document(state, uuid)
    newest = resolve(state.store, state.scope)
    again = [uuid for uuid in removals if uuid in newest.datasets]
    if not again:
        return newest
    state.store.delete([state.scope.published_key(uuid) for uuid in again])
    return resolve(state.store, state.scope)


def _delete_document(state: State, uuid: str) -> None:
    """Delete one document, unless something newer has taken its place."""
    key = document_key(uuid)
    try:
        data = state.store.get(key)
    except ObjectNotFoundError:
        data = b""
    try:
        stamp = read_stamp(data)
    except FormatError:
        stamp = None  # damaged: the digest tells whether it is the removed one
    removed = state.head.removed.get(uuid, "") if state.head else ""
    if stamp is not None and stamp.version > state.version:
        return
    if data and stamp is None and digest(data) != removed:
        return  # another program has just written it: the next writer judges that
    state.store.delete([key, msgpack_document_key(uuid), state.scope.published_key(uuid)])


def publishes_documents(state: State) -> bool:
    """Whether Kartothek readers may see a scope.

    They may not see a cube without a seed dataset, nor a scope whose seed dataset or table declines
    documents.
    """
    entries = state.head.datasets if state.head else {}
    waits = state.scope.kind == "cube" and all(i.role != "seed" for i in entries.values())
    return not waits and not declines_documents(state)


def declines_documents(state: State) -> bool:
    """Whether the seed dataset, or the table, declines documents."""
    entries = state.head.datasets if state.head else {}
    said = [uuid for uuid, item in entries.items() if item.role != "enrichment"]
    known = [uuid for uuid in said if uuid in state.datasets and not state.datasets[uuid].foreign]
    return any(not _as_committed(state, uuid).has_documents for uuid in known)


def _as_committed(state: State, uuid: str) -> Snapshot:
    """A dataset as the log has it, whatever another program did to its document."""
    item = state.datasets[uuid]
    return replace(state, datasets={uuid: replace(item, problem="")}).snapshot(uuid)


def _withdraw_documents(state: State) -> State:
    """Delete the documents of a scope that declines them, the seed dataset's first.

    The mark goes before the document: a missing document whose mark exists was removed by another
    program.
    """
    entries = state.head.datasets if state.head else {}
    store, scope = state.store, state.scope
    for uuid in sorted(entries, key=lambda uuid: entries[uuid].role != "seed"):
        if uuid in state.datasets and _is_ours(state, uuid):
            store.delete([scope.published_key(uuid)])
            store.delete([document_key(uuid), msgpack_document_key(uuid)])
            state = state.stamped(uuid, None)
    return state


def _is_ours(state: State, uuid: str) -> bool:
    """Whether a dataset's document says what the log has: it was published or taken over."""
    assert state.head is not None
    item, adopted = state.datasets[uuid], state.head.datasets[uuid].adopted
    if not item.is_as_committed:
        return False
    if item.stamp is not None or not adopted:
        return item.stamp is not None
    try:
        return digest(state.store.get(document_key(uuid))) == adopted
    except ObjectNotFoundError:
        return False


def _order(state: State) -> list[str]:
    """The datasets to publish, the seed dataset last."""
    if state.head is None or not publishes_documents(state):
        return []
    entries = state.head.datasets
    return sorted(entries, key=lambda uuid: (entries[uuid].role == "seed", uuid))


def _publish_dataset(state: State, uuid: str, anew: bool = False) -> State:
    """Replace a dataset's schema and document, unless they are the same or newer already.

    The schema has no stamp, so a writer that has replaced it and then finds a newer document
    publishes the newest one: see docs/design/files-and-commits.md, Publishing. `anew` means that
    the state was resolved for that, and the schema may be older than the document. Returns the
    published scope.
    """
    assert state.head is not None
    entry, found = state.head.datasets.get(uuid), state.datasets.get(uuid)
    if entry is None or found is None or not found.is_as_committed:
        return state
    version = wanted_version(state.head, uuid)
    if found.stamp is not None and found.stamp.version >= version and not anew:
        return state
    snapshot = state.snapshot(uuid)
    table = str(snapshot.properties.get("table", TABLE))

    def schema(published: bytes) -> bytes:
        keys, left_out = snapshot.partition_keys, snapshot.left_out
        return render_common_metadata(snapshot.schema, keys, published, left_out)

    def rendered() -> bytes:
        indices = published_indices(state.store, snapshot, entry.commit)
        document = _document(snapshot, _cube_metadata(state), entry, indices)
        labels, keys = snapshot.file_column("label"), snapshot.file_column("key")
        partitions = render_partitions(labels, keys, table)
        return render_stamped(document, partitions, version, entry.commit)

    wanted = _Wanted(uuid, version, common_metadata_key(uuid, table), schema, rendered)
    data = _replace_document(state, wanted, anew)
    if data is None:
        newest = replace(resolve(state.store, state.scope), snapshot_cache=state.snapshot_cache)
        if declines_documents(newest):
            return newest
        return _publish_dataset(newest, uuid, anew=True)
    stamp = read_stamp(data)
    return state if stamp is None else state.stamped(uuid, stamp)


@dataclass(frozen=True)
class _Wanted:
    """What is to be published of a dataset: a document of a version, and a schema.

    The schema is made from the published one, which stays if it says the same.
    """

    uuid: str
    version: int
    schema_key: str
    schema: Callable[[bytes], bytes]
    document: Callable[[], bytes]


def _publish_schema(store: ObjectStore, wanted: _Wanted) -> None:
    """Publish a dataset's schema, unless the published one says the same."""
    published = b""
    with suppress(ObjectNotFoundError):
        published = store.get(wanted.schema_key)
    schema = wanted.schema(published)
    if schema != published:
        store.put(wanted.schema_key, schema)


def wanted_version(head: LogEntry, uuid: str) -> int:
    """The version to stamp: the dataset's own, or that of the cube's specification if later."""
    entries = head.datasets
    return max([entries[uuid].version, *(entry.specified for entry in entries.values())])


def _replace_document(state: State, wanted: _Wanted, anew: bool) -> bytes | None:
    """Compare and swap, never backwards, never over another program's document.

    The schema is written after the look at the old document and before the swap. So if the swap
    succeeds, no other publisher came between the two. Returns the published document. None means
    that the scope has to be resolved: another program changed or deleted the document, or a newer
    one appeared after the schema was written. `anew` says that this has been done.
    """
    assert state.head is not None
    store, key, data = state.store, document_key(wanted.uuid), b""
    for _ in range(_RETRIES):
        token, stamp = "", None
        try:
            current, token = store.get_with_token(key)
        except ObjectNotFoundError:
            if not anew and state.datasets[wanted.uuid].stamp is not None:
                return None
        else:
            stamp = read_stamp(current)
            if stamp is None and digest(current) != state.head.datasets[wanted.uuid].adopted:
                if not anew:
                    return None
                raise ForeignWriterError(f"{key} was just written by another program")
            if stamp is not None and stamp.version > wanted.version:
                return None if data else current
            del current  # it may be as large as what replaces it
        _publish_schema(store, wanted)
        data = data or wanted.document()
        try:
            if token:
                store.replace(key, data, token)
            else:
                store.put_if_absent(key, data)
        except (ObjectExistsError, TokenMismatchError):
            continue
        break
    else:
        raise ForeignWriterError(f"{key} keeps changing")
    mark = state.scope.published_key(wanted.uuid)
    if not store.exists(mark):
        store.put(mark, b"")
        if not store.exists(key):  # a slow removal deleted it in place of the old one
            store.delete([mark])
            return None
    return data


def _cube_metadata(state: State) -> dict[str, Any]:
    """The specification in the seed dataset's metadata, which every document repeats."""
    assert state.head is not None
    for uuid, entry in state.head.datasets.items():
        if entry.role == "seed":
            snapshot = state.snapshot(uuid)
            metadata = snapshot.metadata
            if missing := set(too_large(snapshot)).intersection(snapshot.dimension_columns):
                suppressed = cube_value(metadata, SUPPRESS_INDEX_ON) or ()
                metadata = {**metadata, SUPPRESS_INDEX_ON: sorted(missing.union(suppressed))}
            return {key: metadata[key] for key in SPECIFICATION_KEYS if key in metadata}
    return {}


def _document(
    snapshot: Snapshot,
    cube_metadata: Mapping[str, Any],
    entry: DatasetEntry,
    indices: Mapping[str, str],
) -> DatasetDocument:
    metadata = {**snapshot.metadata, **cube_metadata}
    if entry.role != "table":
        metadata[IS_SEED] = entry.role == "seed"
    return DatasetDocument(
        uuid=snapshot.uuid,
        partition_keys=snapshot.partition_keys,
        partitions={},  # rendered apart from it
        indices=indices,
        metadata=metadata,
        table=str(snapshot.properties.get("table", TABLE)),
    )
