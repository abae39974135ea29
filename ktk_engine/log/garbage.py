"""Finds what no retained snapshot refers to, so that a clean-up may delete it.

See docs/design/files-and-commits.md, Clean-up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ktk_engine.errors import FormatError, InvalidKeyError, ObjectNotFoundError
from ktk_engine.format.dataset_key import (
    COMMON_METADATA,
    DATA_SUFFIX,
    INDICES,
    TABLE,
    common_metadata_key,
    document_key,
    published_index_key,
)
from ktk_engine.format.load_document import document_bytes, document_names, named_keys
from ktk_engine.format.stamp import STAMP_BYTES, read_stamp
from ktk_engine.log.chain import Link, read_chain
from ktk_engine.log.entry import LogEntry
from ktk_engine.log.intent import read_intents
from ktk_engine.log.scope import LogScope
from ktk_engine.log.state import State, resolve
from ktk_engine.messages import Message
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.snapshot.stored_snapshot import read_snapshot
from ktk_engine.store.ask_all import ask_all
from ktk_engine.store.interface import ObjectInfo, ObjectStore
from ktk_engine.store.key import folded, is_uuid, join_key

FOREIGN_LIFETIME = timedelta(days=7)  # at least, of files with names of other programs
UNFINISHED_LIFETIME = timedelta(hours=24)
_COMMIT = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class Retention:
    """How long superseded files stay for readers and for history; tagged versions always do."""

    age: timedelta = timedelta(days=7)  # versions that were the newest within this time stay
    # At least this number of the newest versions stays while the scope has a dataset. Only the age
    # counts for a cube or table that was removed.
    versions: int = 10


@dataclass(frozen=True)
class Garbage:
    """What a clean-up would delete."""

    state: State  # resolved after the listing
    objects: tuple[ObjectInfo, ...]  # what nothing refers to, sorted by key
    unfinished: tuple[ObjectInfo, ...]  # temporary files of dead writers, sorted by key
    intents: tuple[str, ...]  # commit ids of dead writers' notes
    unnamed: frozenset[str]  # of the objects, the keys that no version can ever have named
    versions: int  # log entries
    kept_versions: int  # of these, versions that keep their files

    @property
    def bytes(self) -> int:
        """Size of all that would go."""
        return sum(info.size for info in (*self.objects, *self.unfinished))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.objects or self.unfinished or self.intents)


NamedFiles = MutableMapping[str, frozenset[str] | None]


def find_garbage(
    store: ObjectStore,
    scope: LogScope,
    retention: Retention,
    is_published: Callable[[str, str], bool],
    named: NamedFiles | None = None,
) -> Garbage:
    """List a scope's objects and keep everything that may still be needed.

    The listing comes before the intents, and those before the roots: a commit in between is then
    protected by its intent or is among the roots. `is_published` says whether a key in a dataset's
    folder belongs to what is published in another format. `named` maps uuids to the files that
    documents of other scopes name (None if unknown), and is filled for the next scope. Raises a
    `ForeignWriterError`, `UnsupportedFormatError`, `ObjectNotFoundError` or `FormatError` if it
    cannot tell what is needed.
    """
    started = resolve(store, scope)
    before = _entries(_links(started))
    uuids = _uuids(before, started)
    listed = [
        *_objects(store, scope, uuids, frozenset(started.datasets), is_published),
        *_leftovers(store, {*dataset_folders(store, scope)}.difference(uuids)),
    ]
    now = store.now()
    unfinished = _unfinished(store, scope, _uuids(before), now)
    intents = read_intents(store, scope)
    state = resolve(store, scope)
    for dataset in state.datasets.values():
        if dataset.problem:
            raise dataset.error(Message(dataset.problem, ". Nothing was deleted."))
    links = _links(state)
    entries = _entries(links)
    living = {item.commit for item in intents if item.is_alive(now)}
    kept = _kept(links, retention, now, state.head.tags if state.head else {}, living)
    unnamed = {folded(info.key): info for info in listed}
    for keys in _roots(store, state, kept, _expired_keys(entries)):
        for key in keys:
            unnamed.pop(folded(key), None)
    dead = {i.commit for i in intents} - living
    ended = dead | {entry.commit for entry in entries}
    age = max(retention.age, FOREIGN_LIFETIME)
    objects = [info for info in unnamed.values() if _may_go(info, now, living, ended, age)]
    strange = frozenset(info.key for info in objects if not _commits(info) & ended)
    elsewhere = _named_elsewhere(store, state, strange, {} if named is None else named)
    spared = {*map(folded, elsewhere)}
    objects = [info for info in objects if folded(info.key) not in spared]
    known = frozenset().union(living, ended)
    return Garbage(
        state,
        tuple(sorted(objects, key=lambda info: info.key)),
        unfinished,
        tuple(sorted(dead)),
        _never_named(objects, known) if _wrote_all(links) else frozenset(),
        len(entries),
        len(kept),
    )


def dataset_folders(store: ObjectStore, scope: LogScope) -> list[str]:
    """Uuids of a cube's datasets that have a folder, with or without a document; none for a table.

    Kartothek leaves replaced files in place, even when it deletes a dataset or cube. Without a
    document, nothing shows that a folder belonged to a table.
    """
    if not scope.cube:
        return []
    names = store.list_names("", scope.uuid_of(""))
    folders = [name.removesuffix("/") for name in names if name.endswith("/")]
    return [name for name in folders if is_uuid(name) and scope.owns(name)]


def _links(state: State) -> list[Link]:
    if state.head is None:
        return []
    return read_chain(state.store, state.scope, 1, state.version, state.head_sha256)


def _entries(links: Sequence[Link]) -> list[LogEntry]:
    """The readable entries; what a lost entry gave up or ended is kept."""
    return [link.entry for link in links if link.entry is not None]


def _uuids(entries: Sequence[LogEntry], state: State | None = None) -> list[str]:
    """Every dataset that the scope has or ever had; a removed one may never have been committed."""
    uuids = set(state.datasets if state else ())
    for entry in entries:
        uuids.update(entry.datasets, entry.changes)
    return sorted(uuids)


def _expired_keys(entries: Sequence[LogEntry]) -> set[str]:
    """Keys that clean-ups have deleted, or were about to: they never come back."""
    return {key for entry in entries for key in entry.deleted}


def _may_go(
    info: ObjectInfo, now: datetime, living: set[str], ended: set[str], age: timedelta
) -> bool:
    """Whether an object that nothing refers to is surely not work in progress.

    Names that this library makes carry the id of their commit. A name without one, or with an
    unknown one, may belong to an unknown writer, so the object has to grow old first.
    """
    commits = _commits(info)
    if commits & living:
        return False
    return bool(commits & ended) or now - info.modified > age


def _wrote_all(links: Sequence[Link]) -> bool:
    """Whether all files of all versions have names of this library, and all entries are here."""
    records = (record for link in links if link.entry for record in link.entry.changes.values())
    whole = bool(links) and all(link.entry for link in links)
    return whole and all(r.operation != "adopt" for r in records)


def _never_named(objects: Sequence[ObjectInfo], known: frozenset[str]) -> frozenset[str]:
    """Keys of writes that have neither an entry in the log nor a note that they may get one."""
    commits = {info.key: _commits(info) for info in objects}
    return frozenset(key for key, found in commits.items() if found and not found & known)


def _commits(info: ObjectInfo) -> set[str]:
    """The commit ids that a key may carry."""
    return set(_COMMIT.findall(info.key))


def _named_elsewhere(
    store: ObjectStore, state: State, strange: frozenset[str], known: NamedFiles
) -> frozenset[str]:
    """Files that documents of other programs may name, of any cube or table.

    Kartothek's copies under another name may name files of the original. A document that cannot be
    read, or that has no dataset's name, may name any file that has another program's name.
    """
    if not strange:
        return strange
    others = [
        uuid for uuid in document_names(store) if not (is_uuid(uuid) and state.scope.owns(uuid))
    ]
    unknown = [uuid for uuid in others if uuid not in known]
    read = ask_all(store, lambda uuid: _named_by(store, uuid), unknown)
    known.update(zip(unknown, read, strict=True))
    named = [known[uuid] for uuid in others]
    return frozenset[str]().union(*(strange if keys is None else keys for keys in named))


def _named_by(store: ObjectStore, uuid: str) -> frozenset[str] | None:
    """The files that another program's document names; None if it cannot be read."""
    try:
        if read_stamp(store.get_range(document_key(uuid), 0, STAMP_BYTES)) is not None:
            return frozenset()
    except (FormatError, InvalidKeyError, ObjectNotFoundError):
        pass  # read the whole document; there may be none in JSON
    try:
        return named_keys(*document_bytes(store, uuid))
    except ObjectNotFoundError:
        return frozenset()  # deleted since
    except (FormatError, InvalidKeyError):
        return None


def _objects(
    store: ObjectStore,
    scope: LogScope,
    uuids: Sequence[str],
    alive: frozenset[str],
    is_published: Callable[[str, str], bool],
) -> Iterator[ObjectInfo]:
    """Data, index and snapshot files, and notes; other files in a dataset's folder are not judged.

    What was published in other formats goes with its dataset, and no file of it before.
    """
    yield from store.list(join_key(scope.folder, "snapshots") + "/")
    for info in store.list(join_key(scope.folder, "computed") + "/"):
        if info.key not in map(scope.computed_key, alive):
            yield info
    for uuid in uuids:
        for info in store.list(uuid + "/"):
            folder, _, name = info.key.rpartition("/")
            if "//" in info.key:
                continue  # documents may name it with one slash
            if is_published(uuid, info.key):
                if uuid not in alive:
                    yield info
            elif folder != uuid and (name.endswith(DATA_SUFFIX) or name == COMMON_METADATA):
                yield info


def _leftovers(store: ObjectStore, uuids: Collection[str]) -> Iterator[ObjectInfo]:
    """Files of datasets that neither the log nor a document knows, where Kartothek puts them."""
    for uuid in sorted(uuids):
        for folder in (TABLE, INDICES):
            for info in store.list(f"{uuid}/{folder}/"):
                name = info.key.rpartition("/")[2]
                if name.endswith(DATA_SUFFIX) or name == COMMON_METADATA:
                    yield info


def _unfinished(
    store: ObjectStore, scope: LogScope, uuids: Sequence[str], now: datetime
) -> tuple[ObjectInfo, ...]:
    found = [
        info
        for folder in (scope.folder, *uuids)
        for info in store.list_unfinished(folder + "/")
        if now - info.modified > UNFINISHED_LIFETIME
    ]
    return tuple(sorted(found, key=lambda info: info.key))


def _kept(
    links: Sequence[Link],
    retention: Retention,
    now: datetime,
    tags: Mapping[str, int],
    living: Collection[str],
) -> list[LogEntry]:
    """The newest entries, those that were the head within the retention's age, and tagged ones.

    The head is always among them, since the clocks of two writers may differ. So are entries of
    living writers: their snapshots are spared, and what was published names their files. Raises a
    `FormatError` if a kept entry is missing or damaged, since what it needs is then unknown.
    """
    if not links:
        return []
    head = links[-1].entry
    least = max(retention.versions, 1) if head is not None and head.datasets else 1
    newest, tagged = len(links) - least, frozenset(tags.values())
    kept: list[LogEntry] = []
    end = now  # when the version was no longer the newest one
    for number, link in reversed([*enumerate(links)]):
        is_living = link.entry is not None and link.entry.commit in living
        if number >= newest or now - end < retention.age or link.version in tagged or is_living:
            if link.entry is None:
                raise FormatError(link.problem, " Nothing was deleted.")
            kept.append(link.entry)
        end = link.entry.time if link.entry is not None else end
    return kept[::-1]


def _roots(
    store: ObjectStore, state: State, kept: Sequence[LogEntry], expired_keys: set[str]
) -> Iterator[Collection[str]]:
    """Every key that a kept version or a present document refers to; in parts, some repeatedly."""
    items = {i.snapshot: (uuid, i) for entry in kept for uuid, i in entry.datasets.items()}
    newest: dict[str, Snapshot] = {}
    for key, (uuid, item) in items.items():  # the oldest versions first
        # An earlier clean-up may have kept less; history shows only counts of what it deleted.
        if key in expired_keys:
            continue
        found = read_snapshot(store, key, item.snapshot_sha256)
        yield frozenset({item.snapshot})
        yield [published_index_key(uuid, name, item.commit) for name in found.index_segments]
        # An intent may have spared the snapshot alone, after its files were deleted.
        if not expired_keys.intersection(found.segments):
            yield from found.key_parts(newest.get(uuid))
            newest[uuid] = found
    for uuid, snapshot in state.snapshots().items():
        table = snapshot.properties.get("table")
        yield [common_metadata_key(uuid, str(table)) if table else common_metadata_key(uuid)]
        yield from snapshot.key_parts(newest.get(uuid))
