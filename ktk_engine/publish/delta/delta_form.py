"""Publishes datasets as Delta tables: each commit is one entry of a Delta log.

See docs/design/files-and-commits.md, Delta.
"""

from __future__ import annotations

import json
import uuid as uuids
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
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
from ktk_engine.publish.delta.file_actions import Statistics, add_actions, relative_path
from ktk_engine.publish.form import Present, Wanted
from ktk_engine.publish.shared_cells import check_cells
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore

_CHECKPOINT_EVERY = 20
_LARGEST_ENTRY = 10_000  # actions; readers parse an entry again and again
_NTZ_FEATURE = "timestampNtz"
# No writer knows it, so none writes to a table that follows this library's log. Readers ignore it.
_OURS = "dbtKtk"
# This library's clean-up deletes files: it knows of versions that Delta's vacuum does not.
_CONFIGURATION = {"delta.deletedFileRetentionDuration": "interval 36500 days"}
_BOUNDED = "delta.dataSkippingStatsColumns"
# delta-rs 1.0 reads an empty list as one column without a name, and then opens no table.
_NONE_BOUNDED = "delta.dataSkippingNumIndexedCols"


class DeltaForm:
    """Delta: the folder of a dataset is a Delta table; see `Form`."""

    name = "delta"
    title = "Delta"
    record = "Delta log"

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
        table = DeltaTable.of(wanted, present)
        actions = list(table.changes())
        if not actions:
            return None
        return DeltaVersion(wanted, present, table, actions)

    def check(self, store: ObjectStore, snapshot: Snapshot) -> None:
        """See `Form.check`."""
        check_cells(snapshot)
        delta_schema(snapshot)
        for _ in add_actions(snapshot, 0):
            pass

    def difference(self, wanted: Wanted, present: Present) -> str:
        """See `Form.difference`."""
        assert isinstance(present, DeltaState)
        table = DeltaTable.of(wanted, present)
        gained, lost = table.difference
        if gained or lost:
            return (
                f"another program changed its Delta log: {counted(len(lost), 'file')} too many, "
                f"{counted(len(gained), 'file')} missing"
            )
        if any("txn" not in action for action in table.changes()):
            return (
                "another program changed columns or settings in its Delta log, or an earlier "
                "version of this library wrote it"
            )
        return ""

    def verify_with_library(self, wanted: Wanted, present: Present) -> str:
        """See `Form.verify_with_library`."""
        return _verify_with_deltalake(wanted.store, wanted.snapshot)

    def owns(self, uuid: str, key: str) -> bool:
        """See `Form.owns`."""
        return key.startswith(f"{log_folder(uuid)}/")

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

    @property
    def version(self) -> int:
        """See `NextVersion.version`."""
        return self.present.version + 1

    @property
    def note(self) -> str:
        """See `NextVersion.note`."""
        if self.present.commit or self.present.broken or self.present.version < 0:
            return ""
        lost = counted(len(self.table.difference[1]), "file")
        return (
            f"Another program wrote version {self.present.version} of the Delta log. That is "
            f"undone, with the rows of {lost} that it added"
        )

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
        if self.present.broken or self.table.is_due or len(self.actions) > _LARGEST_ENTRY:
            whole = list(self.table.whole())
            put_checkpoint(self.wanted.store, self._uuid, self.version, whole)


@dataclass(frozen=True)
class DeltaTable:
    """One version of a dataset, in Delta's terms."""

    snapshot: Snapshot
    entry: DatasetEntry
    fields: list[dict[str, Any]]  # of Delta's schema
    time: int  # now, in milliseconds since 1970
    present: DeltaState  # what its log says

    @classmethod
    def of(cls, wanted: Wanted, present: DeltaState) -> DeltaTable:
        """Describe a dataset; raises a `PublishError` if Delta readers would see other rows."""
        check_cells(wanted.snapshot)
        fields, time = delta_schema(wanted.snapshot), int(wanted.now.timestamp() * 1000)
        return cls(wanted.snapshot, wanted.entry, fields, time, present)

    @cached_property
    def difference(self) -> tuple[list[str], list[tuple[str, str]]]:
        """The files that the log lacks, and those that it should not have."""
        keys = self.snapshot.file_column("key").to_pylist()
        wanted = {(relative_path(self.snapshot.uuid, key), ""): key for key in keys}
        gained = [key for file, key in wanted.items() if file not in self.present.files]
        return gained, [file for file in self.present.files if file not in wanted]

    @property
    def is_due(self) -> bool:
        """Whether a checkpoint follows."""
        return (self.present.version + 2) % _CHECKPOINT_EVERY == 0

    @cached_property
    def _schema(self) -> str:
        return json.dumps({"type": "struct", "fields": self.fields}, ensure_ascii=False)

    @cached_property
    def _known_bounded(self) -> str | None:
        """The columns that the log says all its files have bounds of.

        None if it does not, or if another program wrote it.
        """
        said = self.present.metadata.get("configuration") or {}
        none = "" if said.get(_NONE_BOUNDED) == "0" else None
        return said.get(_BOUNDED, none) if self.present.commit else None

    @cached_property
    def _is_published(self) -> bool:
        mark = self.entry.version, self.entry.commit
        return (self.present.published, self.present.commit) == mark

    @cached_property
    def _adds_all(self) -> bool:
        """Whether the version adds all files, with statistics that the log lacks.

        They are of an earlier version, or more columns have all bounds by now. That is looked for
        where columns change, and where a checkpoint lists all files in any case.
        """
        known, count = self._known_bounded, self.snapshot.file_table.num_rows
        if known is None:
            return True
        looks = self.is_due or self._schema != self.present.metadata.get("schemaString")
        if self._is_published or not looks or count > _LARGEST_ENTRY:
            return False
        return not set(Statistics.of(self.snapshot).bounded) <= set(known.split(","))

    @cached_property
    def _added(self) -> Snapshot:
        if self._adds_all:
            return self.snapshot
        gained = pa.array(self.difference[0], pa.string())
        kept = pc.is_in(self.snapshot.file_column("key"), value_set=gained)
        return self.snapshot.of_files(kept.combine_chunks())

    @cached_property
    def _statistics(self) -> Statistics:
        return Statistics.of(self._added)

    @cached_property
    def _bounded(self) -> dict[str, str]:
        """The columns that all files have bounds of, as the table's configuration says it."""
        names, known = self._statistics.bounded, self._known_bounded
        stay = self.snapshot.file_table.num_rows - self._added.file_table.num_rows
        if known is not None and stay:
            names = [name for name in names if name in known.split(",")]
        return {_BOUNDED: ",".join(names)} if names else {_NONE_BOUNDED: "0"}

    def changes(self) -> Iterator[Mapping[str, Any]]:
        """The actions that lead from the log's state to this version; none if it says the same."""
        present, (gained, lost) = self.present, self.difference
        if self.protocol != {k: v for k, v in present.protocol.items() if v is not None}:
            yield {"protocol": self.protocol}
        if not _same(self.metadata, present.metadata):
            yield {"metaData": self.metadata}
        if gained or lost or not self._is_published or present.broken:
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
        for action in add_actions(self._added, self.time, self._statistics):
            yield {"add": {**action, "dataChange": (action["path"], "") not in present.files}}

    def whole(self) -> Iterator[Mapping[str, Any]]:
        """All actions of this version, for a reader without earlier state."""
        yield {"protocol": self.protocol}
        yield {"metaData": self.metadata}
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

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The metaData action; a log that has an id keeps it."""
        known = self.present.metadata
        return {
            "id": known.get("id") or str(uuids.uuid4()),
            "name": self.snapshot.uuid,
            "description": self.snapshot.comments.relation or None,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": self._schema,
            "partitionColumns": list(self.snapshot.partition_keys),
            "configuration": {**_CONFIGURATION, **self._bounded},
            "createdTime": known.get("createdTime") or self.time,
        }

    @cached_property
    def protocol(self) -> Mapping[str, Any]:
        """What a reader must support, and a writer; never less than the log requires already."""
        known = self.present.protocol
        reading, writing = (
            set(known.get(name) or ()) for name in ("readerFeatures", "writerFeatures")
        )
        writing.add(_OURS)
        if any(has_ntz(field["type"]) for field in self.fields):
            reading.add(_NTZ_FEATURE)
            writing.add(_NTZ_FEATURE)
        least = max(known.get("minReaderVersion", 1), 3 if reading else 1)
        return {
            "minReaderVersion": least,
            "minWriterVersion": 7,
            **({"readerFeatures": sorted(reading)} if least == 3 else {}),
            "writerFeatures": sorted(writing),
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
        return f"delta-rs finds {len(found):,} files instead of {snapshot.file_table.num_rows:,}"
    names = [field.name for field in table.schema().fields]
    if names != snapshot.schema.names:
        return f"delta-rs finds the columns {', '.join(names)}"
    return ""
