"""Publishes datasets as Iceberg tables: each commit of ours is one snapshot of Iceberg's.

See docs/design/files-and-commits.md, Iceberg.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any
from uuid import uuid4

from ktk_engine.errors import KtkError, ObjectExistsError, ObjectNotFoundError
from ktk_engine.format.file_digest import DAMAGE
from ktk_engine.formatting import counted
from ktk_engine.publish.form import Present, Wanted
from ktk_engine.publish.iceberg.field_ids import FieldIds, name_mapping
from ktk_engine.publish.iceberg.file_entries import address, check_measured
from ktk_engine.publish.iceberg.iceberg_metadata import (
    COMMIT,
    VERSION,
    IcebergState,
    delete_metadata,
    fields_with_keys,
    is_of_table,
    metadata_folder,
    metadata_key,
    names_of_catalogs,
    put_hint,
    read_metadata,
)
from ktk_engine.publish.iceberg.iceberg_schema import iceberg_columns
from ktk_engine.publish.iceberg.manifest import Layout, NewSnapshot, need_avro, read_list
from ktk_engine.publish.iceberg.second_reader import second_opinion
from ktk_engine.publish.iceberg.table_files import TableFiles, named_files
from ktk_engine.publish.shared_cells import check_cells
from ktk_engine.snapshot.snapshot import Snapshot, changed_files
from ktk_engine.snapshot.stored_snapshot import read_snapshot
from ktk_engine.store.interface import ObjectStore

_SNAPSHOT, _SHA256 = "ktk.snapshot", "ktk.snapshot-sha256"
_KEPT_SNAPSHOTS = 10
_TIDIED_EVERY = 20
_UNNAMED_LIFETIME = timedelta(days=1)
# Our clean-up decides when a file goes, and knows of versions that Iceberg's does not.
_OUR_FILES = {"gc.enabled": "false"}
_UNREADABLE = (*DAMAGE, KeyError, TypeError, AttributeError, OverflowError, StopIteration)


class IcebergForm:
    """Iceberg: the folder of a dataset is an Iceberg table; see `Form`."""

    name = "iceberg"
    title = "Iceberg"
    record = "Iceberg metadata"

    def folder(self, uuid: str) -> str:
        """See `Form.folder`."""
        return metadata_folder(uuid)

    def is_current(self, wanted: Wanted) -> bool:
        """See `Form.is_current`."""
        state = read_metadata(wanted.store, wanted.snapshot.uuid)
        if state.broken or state.version != state.hint or state.mark != wanted.mark:
            return False
        return _kept(state, wanted) == state.snapshots

    def read(self, store: ObjectStore, uuid: str) -> IcebergState:
        """See `Form.read`."""
        return read_metadata(store, uuid)

    def next_version(self, wanted: Wanted, present: Present) -> IcebergVersion | None:
        """See `Form.next_version`."""
        assert isinstance(present, IcebergState)
        need_avro()
        table = IcebergTable.of(wanted, present)
        if not table.is_new and _files_differ(wanted, present):
            table = replace(table, is_new=True, continues=False)
        if not table.is_new and table.says(present.metadata):
            if present.hint != present.version:  # who wrote it has died
                put_hint(wanted.store, wanted.snapshot.uuid, present.version)
            return None
        return IcebergVersion(wanted, present, table)

    def check(self, snapshot: Snapshot) -> None:
        """See `Form.check`."""
        need_avro()
        check_cells(snapshot)
        iceberg_columns(snapshot)
        check_measured(snapshot)

    def difference(self, wanted: Wanted, present: Present) -> str:
        """See `Form.difference`."""
        assert isinstance(present, IcebergState)
        need_avro()
        table = IcebergTable.of(wanted, present)
        if problem := _files_differ(wanted, present):
            return problem
        if not table.says(present.metadata):
            return "another program changed columns or settings in its Iceberg metadata"
        if present.hint != present.version:
            return "version-hint.text, by which readers find its metadata, names another version"
        if names := names_of_catalogs(wanted.store, wanted.snapshot.uuid):
            return (
                f"another program has written {names[-1]} beside it: a catalog that names that "
                "file shows other rows, or will. Register the table there anew"
            )
        return ""

    def second_opinion(self, wanted: Wanted) -> str:
        """See `Form.second_opinion`."""
        return second_opinion(wanted.store, wanted.snapshot)

    def delete(self, store: ObjectStore, uuid: str) -> bool:
        """See `Form.delete`."""
        return delete_metadata(store, uuid)


ICEBERG = IcebergForm()


def _kept(present: IcebergState, wanted: Wanted) -> list[Mapping[str, Any]]:
    """The snapshots that stay: those of ours, whose files stay."""
    if present.metadata.get("location") != address(wanted.store, wanted.snapshot.uuid):
        return []  # it was moved
    return [
        item
        for item in present.snapshots
        if (key := item["summary"].get(_SNAPSHOT)) and key not in wanted.given_up
    ]


def _files_differ(wanted: Wanted, present: IcebergState) -> str:
    """How the files that the metadata leads to differ from those of the dataset."""
    store, uuid = wanted.store, wanted.snapshot.uuid
    if present.metadata["location"] != address(store, uuid):
        return f"its Iceberg metadata names files in {present.metadata['location']}"
    path = present.snapshot["manifest-list"].removeprefix(address(store, ""))
    try:
        found = set(named_files(store, store.get(path)))
    except ObjectNotFoundError as error:
        return f"its Iceberg metadata names a file that is missing: {error}"
    except _UNREADABLE as error:
        if isinstance(error, KtkError):
            raise
        return f"a manifest is damaged: {error}"
    keys = wanted.snapshot.file_column("key").to_pylist()
    right = {address(store, key) for key in keys}
    if found == right:
        return ""
    lost, gained = len(found - right), len(right - found)
    return (
        f"its manifests name other files: {counted(lost, 'file')} too many, "
        f"{counted(gained, 'file')} missing"
    )


@dataclass(frozen=True)
class IcebergTable:
    """One version of a dataset, in Iceberg's words.

    Attributes:
        wanted: what is to be published.
        fields: its columns, with ids.
        last_column: the greatest id of a column.
        spec: the fields of its partition spec.
        last_partition: the greatest id of a partition field.
        is_new: whether it needs a snapshot of its own.
        continues: whether the manifests of the snapshot before may stay.
    """

    wanted: Wanted
    fields: list[dict[str, Any]]
    last_column: int
    spec: list[dict[str, Any]]
    last_partition: int
    is_new: bool
    continues: bool

    @classmethod
    def of(cls, wanted: Wanted, present: IcebergState) -> IcebergTable:
        """Describe a dataset.

        Raises:
            PublishError: Iceberg cannot say what it holds, or readers would see other rows.
        """
        check_cells(wanted.snapshot)
        known, columns = present.metadata, iceberg_columns(wanted.snapshot)
        ids = FieldIds(known.get("last-column-id", 0))
        fields = ids.of_columns(columns, present.schema.get("fields", ()))
        keys, last = wanted.snapshot.partition_keys, known.get("last-partition-id", 999)
        spec, last = fields_with_keys(keys, fields, known, last)
        is_here = known.get("location") == address(wanted.store, wanted.snapshot.uuid)
        is_new = present.mark != wanted.mark or not is_here
        same = is_here and spec == present.spec.get("fields") and not ids.retyped
        return cls(wanted, fields, ids.last, spec, last, is_new, same and bool(present.published))

    @cached_property
    def properties(self) -> dict[str, str]:
        """What readers have to know, and may."""
        comment = self.wanted.snapshot.comments.relation
        mapping = json.dumps(name_mapping(self.fields), ensure_ascii=False)
        said = {**_OUR_FILES, "schema.name-mapping.default": mapping}
        return {**said, **({"comment": comment} if comment else {})}

    def says(self, metadata: Mapping[str, Any]) -> bool:
        """Whether metadata has its columns and settings, and all the snapshots that stay."""
        state = IcebergState(0, metadata)
        return (
            metadata.get("properties") == self.properties
            and state.schema.get("fields") == self.fields
            and state.spec.get("fields") == self.spec
            and _kept(state, self.wanted) == state.snapshots
        )


@dataclass(frozen=True)
class IcebergVersion:
    """One version of a table's metadata that is to be put; see `NextVersion`."""

    wanted: Wanted
    present: IcebergState
    table: IcebergTable

    @property
    def version(self) -> int:
        """Its number, of which the first is 1."""
        return max(self.present.version, 0) + 1

    @property
    def _uuid(self) -> str:
        return self.wanted.snapshot.uuid

    @cached_property
    def _snapshot(self) -> NewSnapshot:
        known = self.present.metadata
        parent = self.present.snapshot.get("snapshot-id")
        sequence = int(known.get("last-sequence-number", 0)) + 1
        return NewSnapshot(secrets.randbits(62) + 1, sequence, parent)

    @cached_property
    def _time(self) -> int:
        """Now, in milliseconds since 1970, and later than the version before."""
        now = int(self.wanted.now.timestamp() * 1000)
        return max(now, int(self.present.metadata.get("last-updated-ms", 0)) + 1)

    @cached_property
    def _schema(self) -> dict[str, Any]:
        """The schema, under the id that it has had if it is known."""
        known = self.present.metadata.get("schemas") or ()
        for schema in known:
            if schema["fields"] == self.table.fields:
                return dict(schema)
        number = max((schema["schema-id"] for schema in known), default=-1) + 1
        return {"type": "struct", "schema-id": number, "fields": self.table.fields}

    @cached_property
    def _spec(self) -> dict[str, Any]:
        """The partition spec, under the id that it has had if it is known."""
        known = self.present.metadata.get("partition-specs") or ()
        for spec in known:
            if spec["fields"] == self.table.spec:
                return dict(spec)
        number = max((spec["spec-id"] for spec in known), default=-1) + 1
        return {"spec-id": number, "fields": self.table.spec}

    @cached_property
    def _files(self) -> TableFiles:
        """The manifests: only those that change are written, if it is known what changes."""
        layout = Layout(self._schema, self._spec["spec-id"], self.table.spec)
        whole = TableFiles(self.wanted.store, self.wanted.snapshot, layout, self._snapshot)
        before = self._published_before() if self.table.continues else None
        if before is not None:
            changed = replace(whole, manifests=[], written={})
            gone, added = changed_files(before, self.wanted.snapshot)
            key = self.present.snapshot["manifest-list"]
            base = address(self.wanted.store, "")
            try:
                changed.carry_on(self.wanted.store.get(key.removeprefix(base)), gone)
            except ObjectNotFoundError:
                pass  # then all is said anew
            except _UNREADABLE as error:
                if isinstance(error, KtkError):
                    raise
            else:
                changed.add(added)
                return changed
        whole.add(self.wanted.snapshot.files)
        return whole

    def _published_before(self) -> Snapshot | None:
        """The version that the current manifests are of; None if nobody knows it any more."""
        said = self.present.snapshot["summary"]
        known = self.wanted.known.get(said[_SNAPSHOT])
        try:
            return known or read_snapshot(self.wanted.store, said[_SNAPSHOT], said[_SHA256])
        except (ObjectNotFoundError, KeyError):
            return None

    @cached_property
    def _metadata(self) -> dict[str, Any]:
        present = self.present
        known, snapshots, log = present.metadata, _kept(present, self.wanted), []
        sequence, current = known.get("last-sequence-number", 0), present.snapshot
        if self.table.is_new:
            sequence, current = self._snapshot.sequence, self._new_snapshot()
            snapshots = [*snapshots[1 - _KEPT_SNAPSHOTS :], current]
        used = {item["schema-id"] for item in snapshots}
        schemas = [s for s in known.get("schemas") or () if s["schema-id"] in used]
        specs = list(known.get("partition-specs") or ())
        log = [
            {"timestamp-ms": item["timestamp-ms"], "snapshot-id": item["snapshot-id"]}
            for item in snapshots
        ]
        return {
            "format-version": 2,
            "table-uuid": known.get("table-uuid") or str(uuid4()),
            "location": address(self.wanted.store, self._uuid),
            "last-sequence-number": sequence,
            "last-updated-ms": self._time,
            "last-column-id": self.table.last_column,
            "current-schema-id": self._schema["schema-id"],
            "schemas": schemas if self._schema in schemas else [*schemas, self._schema],
            "default-spec-id": self._spec["spec-id"],
            "partition-specs": specs if self._spec in specs else [*specs, self._spec],
            "last-partition-id": self.table.last_partition,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": self.table.properties,
            "current-snapshot-id": current["snapshot-id"],
            "refs": {"main": {"snapshot-id": current["snapshot-id"], "type": "branch"}},
            "snapshots": snapshots,
            "snapshot-log": log,
            "metadata-log": [],
        }

    def _new_snapshot(self) -> dict[str, Any]:
        new, entry = self._snapshot, self.wanted.entry
        said = {VERSION: str(entry.version), COMMIT: entry.commit}
        said |= {_SNAPSHOT: entry.snapshot, _SHA256: entry.snapshot_sha256}
        parent = {} if new.parent is None else {"parent-snapshot-id": new.parent}
        return {
            "snapshot-id": new.id,
            **parent,
            "sequence-number": new.sequence,
            "timestamp-ms": self._time,
            "manifest-list": address(self.wanted.store, self._files.finish()),
            "summary": {**self._files.summary, **said},
            "schema-id": self._schema["schema-id"],
        }

    def put(self) -> None:
        """See `NextVersion.put`."""
        data = json.dumps(self._metadata, ensure_ascii=False).encode()
        for key, content in self._manifests.items():
            self.wanted.store.put(key, content)
        try:
            self.wanted.store.put_if_absent(metadata_key(self._uuid, self.version), data)
        except ObjectExistsError:
            self.wanted.store.delete(list(self._manifests))
            raise

    @property
    def _manifests(self) -> Mapping[str, bytes]:
        return self._files.written if self.table.is_new else {}

    def follows(self) -> bool:
        """See `NextVersion.follows`."""
        try:
            data = self.wanted.store.get(metadata_key(self._uuid, self.present.version))
        except ObjectNotFoundError:
            return False
        return bool(json.loads(data) == self.present.metadata)

    def take_back(self) -> None:
        """See `NextVersion.take_back`."""
        store = self.wanted.store
        store.delete([metadata_key(self._uuid, self.version)])
        store.delete(list(self._manifests))

    def settle(self) -> None:
        """See `NextVersion.settle`."""
        store = self.wanted.store
        put_hint(store, self._uuid, self.version)
        if self.version % _TIDIED_EVERY == 0 or not self.table.is_new:
            _tidy(store, self._uuid, self._metadata)


def _tidy(store: ObjectStore, uuid: str, metadata: Mapping[str, Any]) -> None:
    """Delete what no snapshot of a version leads to, once no reader can be at it any more."""
    folder, now = metadata_folder(uuid), store.now()
    newest = read_metadata(store, uuid)
    if newest.metadata != metadata:
        return  # somebody else has written on: let that one do it
    base, named = address(store, ""), {metadata_key(uuid, newest.version)}
    for snapshot in newest.snapshots:
        key = snapshot["manifest-list"].removeprefix(base)
        try:
            listed = read_list(store.get(key))
        except ObjectNotFoundError:
            return
        named |= {key, *(item["manifest_path"].removeprefix(base) for item in listed)}
    old = [
        info.key
        for info in store.list(f"{folder}/")
        if info.key not in named
        and is_of_table(info.key.removeprefix(f"{folder}/"))
        and now - info.modified > _UNNAMED_LIFETIME
    ]
    store.delete(old)
