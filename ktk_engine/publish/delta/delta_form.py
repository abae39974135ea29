"""Publishes datasets as Delta tables: each commit is one entry of a Delta log.

See docs/design/files-and-commits.md, Delta.
"""

from __future__ import annotations

import json
import uuid as uuids
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.formatting import counted
from ktk_engine.log.entry import DatasetEntry
from ktk_engine.publish.delta.delta_log import (
    APP_ID,
    DeltaState,
    delete_log,
    entry_key,
    log_folder,
    newest_mark,
    put_checkpoint,
    put_entry,
    read_log,
    still_ends_with,
)
from ktk_engine.publish.delta.delta_schema import delta_schema, has_ntz
from ktk_engine.publish.delta.file_actions import add_actions, relative_path
from ktk_engine.publish.form import Present, Wanted
from ktk_engine.publish.shared_cells import check_cells
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore

_CHECKPOINT_EVERY = 20
_LARGEST_ENTRY = 10_000  # actions; readers parse an entry again and again
_NTZ_FEATURE = "timestampNtz"
# This library's clean-up deletes files: it knows of versions that Delta's vacuum does not.
_CONFIGURATION = {"delta.deletedFileRetentionDuration": "interval 36500 days"}


class DeltaForm:
    """Delta: the folder of a dataset is a Delta table; see `Form`."""

    name = "delta"
    title = "Delta"
    record = "Delta log"
    remedy = "publish"

    def folder(self, uuid: str) -> str:
        """See `Form.folder`."""
        return log_folder(uuid)

    def is_current(self, wanted: Wanted) -> bool:
        """See `Form.is_current`."""
        return newest_mark(wanted.store, wanted.snapshot.uuid) == wanted.mark

    def read(self, store: ObjectStore, uuid: str) -> DeltaState:
        """See `Form.read`."""
        return read_log(store, uuid)

    def next_version(self, wanted: Wanted, present: Present) -> DeltaVersion | None:
        """See `Form.next_version`."""
        assert isinstance(present, DeltaState)
        table = DeltaTable.of(wanted)
        actions = list(table.changes(present))
        if not actions:
            return None
        return DeltaVersion(wanted, present, table, actions, present.version + 1)

    def check(self, store: ObjectStore, snapshot: Snapshot) -> None:
        """See `Form.check`."""
        check_cells(snapshot)
        delta_schema(snapshot)
        for _ in add_actions(snapshot, 0):
            pass

    def difference(self, wanted: Wanted, present: Present) -> str:
        """See `Form.difference`."""
        assert isinstance(present, DeltaState)
        table = DeltaTable.of(wanted)
        gained, lost = table.difference(present)
        if gained or lost:
            return (
                f"another program changed its Delta log: {counted(len(lost), 'file')} too many, "
                f"{counted(len(gained), 'file')} missing"
            )
        changed = any("txn" not in action for action in table.changes(present))
        return "another program changed columns or settings in its Delta log" if changed else ""

    def verify_with_library(self, wanted: Wanted) -> str:
        """See `Form.verify_with_library`."""
        return _verify_with_deltalake(wanted.store, wanted.snapshot)

    def delete(self, store: ObjectStore, uuid: str) -> bool:
        """See `Form.delete`."""
        return delete_log(store, uuid)


DELTA = DeltaForm()


@dataclass(frozen=True)
class DeltaVersion:
    """One entry of a Delta log that is to be put; see `NextVersion`."""

    wanted: Wanted
    present: DeltaState
    table: DeltaTable
    actions: list[Mapping[str, Any]]
    version: int

    @property
    def _uuid(self) -> str:
        return self.wanted.snapshot.uuid

    def put(self) -> None:
        """See `NextVersion.put`."""
        actions = [self.table.commit_info(), *self.actions]
        put_entry(self.wanted.store, self._uuid, self.version, self.wanted.mark, actions)

    def follows(self) -> bool:
        """See `NextVersion.follows`."""
        return still_ends_with(self.wanted.store, self._uuid, self.present)

    def take_back(self) -> None:
        """See `NextVersion.take_back`."""
        self.wanted.store.delete([entry_key(self._uuid, self.version)])

    def settle(self) -> None:
        """See `NextVersion.settle`."""
        due = (self.version + 1) % _CHECKPOINT_EVERY == 0 or len(self.actions) > _LARGEST_ENTRY
        if self.present.broken or due:
            whole = list(self.table.whole(self.present))
            put_checkpoint(self.wanted.store, self._uuid, self.version, whole)


@dataclass(frozen=True)
class DeltaTable:
    """One version of a dataset, in Delta's terms."""

    snapshot: Snapshot
    entry: DatasetEntry
    fields: list[dict[str, Any]]  # of Delta's schema
    time: int  # now, in milliseconds since 1970

    @classmethod
    def of(cls, wanted: Wanted) -> DeltaTable:
        """Describe a dataset; raises a `PublishError` if Delta readers would see other rows."""
        check_cells(wanted.snapshot)
        fields, time = delta_schema(wanted.snapshot), int(wanted.now.timestamp() * 1000)
        return cls(wanted.snapshot, wanted.entry, fields, time)

    def difference(self, present: DeltaState) -> tuple[list[str], list[tuple[str, str]]]:
        """The files that a log lacks, and those that it should not have."""
        keys = self.snapshot.file_column("key").to_pylist()
        wanted = {(relative_path(self.snapshot.uuid, key), ""): key for key in keys}
        gained = [key for file, key in wanted.items() if file not in present.files]
        return gained, [file for file in present.files if file not in wanted]

    def changes(self, present: DeltaState) -> Iterator[Mapping[str, Any]]:
        """The actions that lead from a log's state to this version; none if it says the same."""
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
        """All actions of this version, for a reader without earlier state."""
        yield {"protocol": self.protocol(present)}
        yield {"metaData": self.metadata(present)}
        yield self._transaction()
        for action in add_actions(self.snapshot, self.time):
            yield {"add": {**action, "dataChange": False}}

    def commit_info(self) -> dict[str, Any]:
        """What Delta's history shows of the version."""
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
        """The metaData action; a log that has an id keeps it."""
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
        """The protocol that a reader must support; never less than the log requires already."""
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


def _same(wanted: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Whether two metaData actions say the same."""
    names = ("name", "description", "schemaString", "partitionColumns", "configuration")
    return all((wanted[name] or None) == (known.get(name) or None) for name in names)


def _verify_with_deltalake(store: ObjectStore, snapshot: Snapshot) -> str:
    """What delta-rs finds wrong with a published dataset; empty if it finds the same files.

    Empty too without the package deltalake, and on object stores, whose credentials it does not
    have.
    """
    address = urlsplit(store.uri(snapshot.uuid))
    if address.scheme != "file" or find_spec("deltalake") is None:
        return ""
    import deltalake

    try:
        table = deltalake.DeltaTable(unquote(address.path))
        found = sorted(table.file_uris())
    except Exception as error:  # noqa: BLE001 (whatever it says is reported)
        return f"delta-rs cannot read its Delta log: {error}"
    if len(found) != snapshot.file_table.num_rows:
        return (
            f"delta-rs finds {len(found):,} files, and {snapshot.file_table.num_rows:,} are right"
        )
    names = [field.name for field in table.schema().fields]
    if names != snapshot.schema.names:
        return f"delta-rs finds the columns {', '.join(names)}"
    return ""
