"""The next version of an Iceberg table's metadata, with the manifests that it needs.

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

from ktk_engine.errors import (
    FormatError,
    ObjectExistsError,
    ObjectNotFoundError,
)
from ktk_engine.format.file_digest import DAMAGE
from ktk_engine.publish.form import Wanted
from ktk_engine.publish.iceberg.field_ids import usable_specs
from ktk_engine.publish.iceberg.iceberg_metadata import (
    COMMIT,
    SHA256,
    SNAPSHOT,
    SPEC,
    VERSION,
    Addresses,
    IcebergState,
    is_of_table,
    metadata_folder,
    metadata_key,
    put_hint,
    read_metadata,
)
from ktk_engine.publish.iceberg.iceberg_table import IcebergTable
from ktk_engine.publish.iceberg.manifest import Layout, NewSnapshot, read_list
from ktk_engine.publish.iceberg.table_files import TableFiles
from ktk_engine.snapshot.snapshot import Snapshot, changed_files
from ktk_engine.snapshot.stored_snapshot import read_snapshot
from ktk_engine.store.interface import ObjectStore

_KEPT_SNAPSHOTS = 10
# A slow writer looks back at the version before its own.
_KEPT_VERSIONS = 2 * _KEPT_SNAPSHOTS
_TIDIED_EVERY = 20
_UNNAMED_LIFETIME = timedelta(days=1)


@dataclass(frozen=True)
class IcebergVersion:
    """One version of a table's metadata that is to be put; see `NextVersion`."""

    wanted: Wanted
    present: IcebergState
    table: IcebergTable

    @property
    def version(self) -> int:
        """Its number; the first is 1."""
        return max(self.present.version, 0) + 1

    @property
    def note(self) -> str:
        """See `NextVersion.note`."""
        if self.present.version < 0 or self.present.broken or self.present.published:
            return ""
        return (
            f"Another program wrote version {self.present.version} of the Iceberg metadata. That "
            "is undone, with the rows that it added"
        )

    @property
    def _uuid(self) -> str:
        return self.wanted.snapshot.uuid

    @cached_property
    def _snapshot(self) -> NewSnapshot:
        known = self.present.metadata
        parent = self.present.snapshot.get("snapshot-id")
        sequence = known.get("last-sequence-number", 0) + 1
        return NewSnapshot(secrets.randbits(62) + 1, sequence, parent)

    @cached_property
    def _time(self) -> int:
        """Now, in milliseconds since 1970, and later than the version before."""
        now = int(self.wanted.now.timestamp() * 1000)
        before: int = self.present.metadata.get("last-updated-ms", 0)
        return max(now, before + 1)

    @cached_property
    def _schema(self) -> dict[str, Any]:
        """The schema, under its earlier id if it is known."""
        known = self.present.metadata.get("schemas") or ()
        for schema in known:
            if schema["fields"] == self.table.fields:
                return dict(schema)
        number = max((schema["schema-id"] for schema in known), default=-1) + 1
        return {"type": "struct", "schema-id": number, "fields": self.table.fields}

    @cached_property
    def _spec(self) -> dict[str, Any]:
        """The partition spec, under its earlier id if it is known."""
        known = self.present.metadata.get("partition-specs") or ()
        for spec in known:
            if spec["fields"] == self.table.spec:
                return dict(spec)
        number = max((spec["spec-id"] for spec in known), default=-1) + 1
        return {"spec-id": number, "fields": self.table.spec}

    @cached_property
    def _files(self) -> TableFiles:
        """The manifests; if the changes are known, only manifests that change are written."""
        layout = Layout(self._schema, self._spec["spec-id"], self.table.spec)
        whole = TableFiles(self.table.addresses, self.wanted.snapshot, layout, self._snapshot)
        before = self._published_before() if self.table.continues else None
        if before is not None:
            changed = replace(whole, manifests=[], written={})
            try:
                gone, added = changed_files(before, self.wanted.snapshot)
                changed.carry_on(self.present.snapshot["manifest-list"], gone)
            except (ObjectNotFoundError, FormatError):
                pass  # then all manifests are rewritten
            else:
                changed.add(added)
                return changed
        whole.add_all(self.present.snapshot.get("summary", {}))
        return whole

    def _published_before(self) -> Snapshot | None:
        """The snapshot that the current manifests describe; None if it is no longer available."""
        said = self.present.snapshot["summary"]
        known = self.wanted.snapshot_cache.get(said[SNAPSHOT])
        try:
            return known or read_snapshot(self.wanted.store, said[SNAPSHOT], said[SHA256])
        except (ObjectNotFoundError, FormatError):
            return None

    @cached_property
    def _metadata(self) -> dict[str, Any]:
        present = self.present
        known, snapshots = present.metadata, self.table.snapshots
        sequence, current = known.get("last-sequence-number", 0), present.snapshot
        if self.table.is_new:
            sequence, current = self._snapshot.sequence, self._new_snapshot()
            snapshots = [*snapshots[1 - _KEPT_SNAPSHOTS :], current]
        used = {item["schema-id"] for item in snapshots}
        schemas = [s for s in known.get("schemas") or () if s["schema-id"] in used]
        specs = usable_specs(known.get("partition-specs") or (), self.table.fields)
        log = [
            {"timestamp-ms": item["timestamp-ms"], "snapshot-id": item["snapshot-id"]}
            for item in snapshots
        ]
        return {
            "format-version": 2,
            "table-uuid": known.get("table-uuid") or str(uuid4()),
            "location": self.table.addresses.location,
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
        said |= {SNAPSHOT: entry.snapshot, SHA256: entry.snapshot_sha256}
        said |= {SPEC: str(self._spec["spec-id"])}
        parent = {} if new.parent is None else {"parent-snapshot-id": new.parent}
        return {
            "snapshot-id": new.id,
            **parent,
            "sequence-number": new.sequence,
            "timestamp-ms": self._time,
            "manifest-list": self.table.addresses.address(self._files.finish()),
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
        try:
            return bool(json.loads(data) == self.present.metadata)
        except DAMAGE:
            return False

    def take_back(self) -> None:
        """See `NextVersion.take_back`."""
        store = self.wanted.store
        store.delete([metadata_key(self._uuid, self.version)])
        store.delete(list(self._manifests))

    def settle(self) -> None:
        """See `NextVersion.settle`."""
        store = self.wanted.store
        tidies = self.version % _TIDIED_EVERY == 0 or not self.table.is_new
        put_hint(store, self._uuid, self.version)
        if tidies:
            _tidy(self.table.addresses, self._uuid, self._metadata)


def _tidy(addresses: Addresses, uuid: str, metadata: Mapping[str, Any]) -> None:
    """Delete files that no snapshot of a version leads to, once no reader can still use them.

    A catalog may have registered a version of the metadata, which stays while the snapshot that it
    shows does. Its number does not tell, because clean-ups write versions without a new snapshot.
    """
    store, folder = addresses.store, metadata_folder(uuid)
    now = store.now()
    newest = read_metadata(store, uuid)
    if newest.metadata != metadata:
        return  # another writer went on and will do it
    recent = range(newest.version - _KEPT_VERSIONS, newest.version + 1)
    named = {metadata_key(uuid, version) for version in recent}
    for snapshot in newest.snapshots:
        try:
            listed = read_list(addresses, snapshot["manifest-list"])
            paths = (snapshot["manifest-list"], *(item["manifest_path"] for item in listed))
            named.update([addresses.key(path) for path in paths])
        except (ObjectNotFoundError, FormatError):
            return
    kept = [snapshot["snapshot-id"] for snapshot in newest.snapshots]
    old = [
        info.key
        for info in store.list(f"{folder}/")
        if info.key not in named
        and is_of_table(info.key.removeprefix(f"{folder}/"))
        and now - info.modified > _UNNAMED_LIFETIME
        and not (info.key.endswith(".json") and _current_snapshot(store, info.key) in kept)
    ]
    store.delete(old)


def _current_snapshot(store: ObjectStore, key: str) -> object:
    """The snapshot that a version of the metadata shows; None if it shows none."""
    try:
        return json.loads(store.get(key))["current-snapshot-id"]
    except (*DAMAGE, ObjectNotFoundError):
        return None
