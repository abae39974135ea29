"""Publishes datasets as Delta tables: each commit of ours is one entry of a Delta log.

See docs/design/files-and-commits.md, Delta.
"""

from __future__ import annotations

import json
import logging
import uuid as uuids
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.cube.dataset_uuid import cube_and_dataset
from ktk_engine.errors import KtkError, ObjectExistsError, PublishError
from ktk_engine.formatting import counted
from ktk_engine.log.entry import DatasetEntry
from ktk_engine.log.state import State, resolve
from ktk_engine.messages import Message, Remedy, joined
from ktk_engine.publish.delta.delta_log import (
    APP_ID,
    DeltaState,
    delete_log,
    entry_key,
    newest_mark,
    put_checkpoint,
    put_entry,
    read_log,
    still_ends_with,
)
from ktk_engine.publish.delta.delta_schema import delta_schema, has_ntz
from ktk_engine.publish.delta.file_actions import add_actions, relative_path
from ktk_engine.publish.delta.shared_cells import may_share_cells
from ktk_engine.snapshot.snapshot import Snapshot

DELTA = "delta"
_LOGGER = logging.getLogger(__name__)
_RETRIES = 20
_CHECKPOINT_EVERY = 20
_LARGEST_ENTRY = 10_000  # actions; readers would parse more of them again and again
_NTZ_FEATURE = "timestampNtz"
# Our clean-up decides when a file goes, and knows of versions that Delta's vacuum does not.
_CONFIGURATION = {"delta.deletedFileRetentionDuration": "interval 36500 days"}


def publish_delta_logs(state: State) -> str:
    """Bring the Delta logs of a scope up to its head.

    Only datasets whose snapshots are known are looked at: a commit knows all that it needs.

    Args:
        state: the scope.

    Returns:
        A warning, empty if all is published. A failure here is never an error, not even a bug:
        the next commit publishes it.
    """
    warnings = []
    for uuid, item in state.datasets.items():
        if item.entry is None or item.problem or item.foreign:
            continue
        snapshot = state.known.get(item.entry.snapshot)
        if snapshot is None or DELTA not in snapshot.published_as:
            continue
        try:
            if newest_mark(state.store, uuid) != (item.entry.version, item.entry.commit):
                publish_delta(state, uuid)
        except KtkError as error:
            _LOGGER.warning("%s is committed, but not published as Delta: %s", uuid, error)
            warnings.append(
                Message(
                    f"{uuid} is committed, but its Delta log still has an older version: ",
                    error.message.rstrip("."),
                )
            )
        except Exception as error:
            _LOGGER.exception("%s is committed, but could not be published as Delta", uuid)
            warnings.append(
                Message(
                    f"{uuid} is committed, but its Delta log still has an older version: "
                    f"{error!r}. To try again: ",
                    Remedy.on("publish", *cube_and_dataset(uuid)),
                )
            )
    return joined("; ", warnings)


def drop_delta_logs(state: State, removed: Collection[str] = ()) -> State:
    """Delete the Delta logs of datasets that were removed, also where they were built again.

    Args:
        state: the scope.
        removed: datasets that may have been removed before the head.

    Returns:
        The state to publish: if one of them was published again meanwhile, that is done again.
    """
    known = {*removed, *(state.head.removed if state.head else ())}
    gone = [uuid for uuid in sorted(known) if not _is_published(state, uuid)]
    found = [uuid for uuid in gone if delete_log(state.store, uuid)]
    if not found:
        return state
    newest = replace(resolve(state.store, state.scope), known=state.known)
    for uuid in set(found) & set(newest.datasets):
        newest.snapshot(uuid)
    return newest


def publish_delta(state: State, uuid: str) -> int:
    """Bring the Delta log of one dataset up to the scope's head; nothing if it is already.

    Args:
        state: the scope.
        uuid: the dataset.

    Returns:
        The version of the Delta log; -1 if nobody is to see the dataset yet, or any more.

    Raises:
        PublishError: the dataset cannot be said in Delta as it is; its log stays as it was.
        StoreError: the store failed.
    """
    if state.store.is_staged:
        return -1  # nobody is to see it yet
    for attempt in range(_RETRIES):
        present = read_log(state.store, uuid)
        # The head that is resolved after the log was read is never older than what the log has.
        if attempt or present.broken or present.published > _version(state, uuid):
            state = replace(resolve(state.store, state.scope), known=state.known)
            if not _is_published(state, uuid):
                return -1  # removed meanwhile, or stopped
        item = state.datasets[uuid]
        if item.entry is None or item.problem or item.foreign:
            raise PublishError(item.problem or "another program has just changed it")
        table = DeltaTable.of(state.snapshot(uuid), item.entry, state.store.now())
        actions = list(table.changes(present))
        if not actions:
            return present.version
        version = present.version + 1
        try:
            mark = (item.entry.version, item.entry.commit)
            put_entry(state.store, uuid, version, mark, [table.commit_info(), *actions])
        except ObjectExistsError:
            state.store.backoff.pause(attempt + 1)
            continue
        if not version and not _is_published(resolve(state.store, state.scope), uuid):
            delete_log(state.store, uuid)  # it was just deleted, since nobody was to see it
            continue  # unless somebody asks for it again
        if not _follows(state, uuid, version, present):
            state.store.delete([entry_key(uuid, version)])
            continue
        due = (version + 1) % _CHECKPOINT_EVERY == 0 or len(actions) > _LARGEST_ENTRY
        if present.broken or due:
            put_checkpoint(state.store, uuid, version, list(table.whole(present)))
        return version
    again = Remedy.on("publish", *cube_and_dataset(uuid))
    raise PublishError(Message("its Delta log keeps changing. Run later: ", again))


def _version(state: State, uuid: str) -> int:
    entry = state.datasets[uuid].entry
    return entry.version if entry else 0


def _follows(state: State, uuid: str, version: int, present: DeltaState) -> bool:
    """Whether an entry that was put belongs to the log: somebody may have begun that anew.

    After a log that cannot be read, it does as long as it is of the newest version.
    """
    if present.broken:
        newest = resolve(state.store, state.scope)
        return uuid in newest.datasets and _version(newest, uuid) == _version(state, uuid)
    return not version or still_ends_with(state.store, uuid, present)


def _is_published(state: State, uuid: str) -> bool:
    return uuid in state.datasets and DELTA in state.snapshot(uuid).published_as


def check_delta(state: State, uuid: str) -> str:
    """Say how the Delta log of a dataset differs from what is committed; empty if it does not.

    Args:
        state: the scope.
        uuid: a dataset that is published.
    """
    item = state.datasets[uuid]
    assert item.entry is not None
    present = read_log(state.store, uuid)
    if present.broken or present.version < 0:
        return present.broken or "it has no Delta log"
    table = DeltaTable.of(state.snapshot(uuid), item.entry, state.store.now())
    if present.published != item.entry.version:
        known = f"version {present.published}" if present.published else "no version of ours"
        return f"its Delta log has {known}, and version {item.entry.version} is committed"
    gained, lost = table.difference(present)
    if gained or lost:
        return (
            f"another program changed its Delta log: {counted(len(lost), 'file')} too many, "
            f"{counted(len(gained), 'file')} missing"
        )
    changed = any("txn" not in action for action in table.changes(present))
    return "another program changed columns or settings in its Delta log" if changed else ""


@dataclass(frozen=True)
class DeltaTable:
    """One version of a dataset, in Delta's words.

    Attributes:
        snapshot: the dataset.
        entry: where it stands in our log.
        fields: its columns, as Delta's schema has them.
        time: now, in milliseconds since 1970.
    """

    snapshot: Snapshot
    entry: DatasetEntry
    fields: list[dict[str, Any]]
    time: int

    @classmethod
    def of(cls, snapshot: Snapshot, entry: DatasetEntry, now: datetime) -> DeltaTable:
        """Describe a dataset.

        Raises:
            PublishError: Delta cannot say what it holds, or readers would see other rows.
        """
        return cls(snapshot, entry, _fields(snapshot), int(now.timestamp() * 1000))

    def difference(self, present: DeltaState) -> tuple[list[str], list[tuple[str, str]]]:
        """The files that a log lacks, and those that it has too much."""
        keys = self.snapshot.file_column("key").to_pylist()
        wanted = {(relative_path(self.snapshot.uuid, key), ""): key for key in keys}
        gained = [key for file, key in wanted.items() if file not in present.files]
        return gained, [file for file in present.files if file not in wanted]

    def changes(self, present: DeltaState) -> Iterator[Mapping[str, Any]]:
        """The actions that lead from what a log says to this version; none if it says that."""
        gained, lost = self.difference(present)
        metadata, protocol = self.metadata(present), self.protocol(present)
        if protocol != present.protocol:
            yield {"protocol": protocol}
        if not _same(metadata, present.metadata):
            yield {"metaData": metadata}
        published = (present.published, present.commit) == (self.entry.version, self.entry.commit)
        if gained or lost or not published or present.broken:
            yield self._transaction()
        for path, vector in lost:
            remove: dict[str, Any] = {
                "path": path,
                "deletionTimestamp": self.time,
                "dataChange": True,
            }
            if vector:
                remove["deletionVector"] = present.files[path, vector]
            yield {"remove": remove}
        kept = pc.is_in(self.snapshot.file_column("key"), value_set=pa.array(gained, pa.string()))
        added = self.snapshot.of_files(kept.combine_chunks())
        for action in add_actions(added, self.time):
            yield {"add": action}

    def whole(self, present: DeltaState) -> Iterator[Mapping[str, Any]]:
        """The actions that say all of this version to who knows nothing."""
        yield {"protocol": self.protocol(present)}
        yield {"metaData": self.metadata(present)}
        yield self._transaction()
        for action in add_actions(self.snapshot, self.time):
            yield {"add": {**action, "dataChange": False}}

    def commit_info(self) -> dict[str, Any]:
        """What Delta's history shows of it."""
        said = f"version {self.entry.version} of dbt-ktk, commit {self.entry.commit}"
        return {
            "commitInfo": {
                "timestamp": self.time,
                "operation": "WRITE",
                "operationParameters": {},
                "engineInfo": APP_ID,
                "userMetadata": said,
            }
        }

    def metadata(self, present: DeltaState) -> dict[str, Any]:
        """What the table is; a log that has an id keeps it."""
        known = present.metadata
        return {
            "id": known.get("id") or str(uuids.uuid4()),
            "name": self.snapshot.uuid,
            "description": self.snapshot.comments.relation or None,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(
                {"type": "struct", "fields": self.fields}, ensure_ascii=False
            ),
            "partitionColumns": list(self.snapshot.partition_keys),
            "configuration": _CONFIGURATION,
            "createdTime": known.get("createdTime") or self.time,
        }

    def protocol(self, present: DeltaState) -> Mapping[str, Any]:
        """What a reader has to understand; never less than what the log asks for already."""
        known = present.protocol
        features = set(known.get("writerFeatures") or ())
        if not any(has_ntz(field["type"]) for field in self.fields):
            return known or {"minReaderVersion": 1, "minWriterVersion": 2}
        if _NTZ_FEATURE in features:
            return known
        reading = set(known.get("readerFeatures") or ())
        return {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": sorted(reading | {_NTZ_FEATURE}),
            "writerFeatures": sorted(features | {_NTZ_FEATURE}),
        }

    def _transaction(self) -> dict[str, Any]:
        version, time = self.entry.version, self.time
        return {"txn": {"appId": APP_ID, "version": version, "lastUpdated": time}}


def check_expressible(snapshot: Snapshot) -> None:
    """Refuse a dataset that cannot be published as it is.

    Raises:
        PublishError: Delta cannot say what it holds, or readers would see other rows.
    """
    _fields(snapshot)
    for _ in add_actions(snapshot, 0):
        pass


def _fields(snapshot: Snapshot) -> list[dict[str, Any]]:
    """The columns, of a dataset whose files together are its rows."""
    if may_share_cells(snapshot):
        raise PublishError(
            Message(
                f"cells of {snapshot.uuid} may be in several of its files, of which the last "
                "counts, as only the log knows. Compact it first, which publishes it, too: ",
                Remedy.on("compact", *cube_and_dataset(snapshot.uuid)),
            )
        )
    return delta_schema(snapshot)


def _same(wanted: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Whether two metaData actions say the same."""
    names = ("name", "description", "schemaString", "partitionColumns", "configuration")
    return all((wanted[name] or None) == (known.get(name) or None) for name in names)
