"""Publishes datasets as Iceberg tables: each commit is one Iceberg snapshot.

See docs/design/files-and-commits.md, Iceberg.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from io import BytesIO
from typing import Any

from ktk_engine.errors import FormatError, ObjectNotFoundError
from ktk_engine.formatting import counted
from ktk_engine.publish.form import Present, Wanted
from ktk_engine.publish.iceberg.field_ids import fields_with_keys
from ktk_engine.publish.iceberg.iceberg_metadata import (
    Addresses,
    IcebergState,
    delete_metadata,
    metadata_folder,
    metadata_key,
    names_of_catalogs,
    put_hint,
    read_metadata,
)
from ktk_engine.publish.iceberg.iceberg_schema import iceberg_columns
from ktk_engine.publish.iceberg.iceberg_table import IcebergTable, addresses_of, kept_snapshots
from ktk_engine.publish.iceberg.iceberg_version import IcebergVersion
from ktk_engine.publish.iceberg.manifest import Layout, NewSnapshot, checked_content, need_avro
from ktk_engine.publish.iceberg.table_files import TableFiles, named_files
from ktk_engine.publish.shared_cells import check_cells
from ktk_engine.publish.stored_types import schemas_in_use
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore


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
        addresses, fields = addresses_of(wanted, state), state.schema["fields"]
        return kept_snapshots(wanted, state, addresses, fields) == state.snapshots

    def read(self, store: ObjectStore, uuid: str) -> IcebergState:
        """See `Form.read`."""
        return read_metadata(store, uuid)

    def next_version(self, wanted: Wanted, present: Present) -> IcebergVersion | None:
        """See `Form.next_version`."""
        assert isinstance(present, IcebergState)
        need_avro()
        table = IcebergTable.of(wanted, present)
        if not table.is_new and _files_differ(table, present):
            kept = [item for item in table.snapshots if item != present.snapshot]
            table = replace(table, snapshots=kept, is_new=True, continues=False)
        if not table.is_new and table.says(present):
            put_hint(wanted.store, wanted.snapshot.uuid, present.version)
            return None
        return IcebergVersion(wanted, present, table)

    def check(self, store: ObjectStore, snapshot: Snapshot) -> None:
        """See `Form.check`."""
        need_avro()
        check_cells(snapshot)
        fields = iceberg_columns(snapshot, schemas_in_use(snapshot))
        spec, _ = fields_with_keys(snapshot.partition_keys, fields, {})
        layout = Layout({"schema-id": 0, "fields": fields}, 0, spec)
        files = TableFiles(
            Addresses.of(store, snapshot.uuid, None), snapshot, layout, NewSnapshot(1, 1, None)
        )
        files.add(snapshot.files)
        files.finish()

    def difference(self, wanted: Wanted, present: Present) -> str:
        """See `Form.difference`."""
        assert isinstance(present, IcebergState)
        need_avro()
        table = IcebergTable.of(wanted, present)
        if problem := _files_differ(table, present):
            return problem
        if not table.says(present):
            return "another program changed columns or settings in its Iceberg metadata"
        if present.hint != present.version:
            return "version-hint.text, by which readers find its metadata, names another version"
        if names := names_of_catalogs(wanted.store, wanted.snapshot.uuid):
            return (
                f"another program has written {names[-1]}: a catalog that names that "
                "file shows other rows, or will. Register the table there again"
            )
        return ""

    def verify_with_library(self, wanted: Wanted, present: Present) -> str:
        """See `Form.verify_with_library`."""
        assert isinstance(present, IcebergState)
        return _verify_with_pyiceberg(wanted, present)

    def owns(self, uuid: str, key: str) -> bool:
        """See `Form.owns`."""
        endings = (".metadata.json", ".avro", "/version-hint.text")
        return key.startswith(f"{metadata_folder(uuid)}/") and key.endswith(endings)

    def delete(self, store: ObjectStore, uuid: str) -> bool:
        """See `Form.delete`."""
        return delete_metadata(store, uuid)


ICEBERG = IcebergForm()


def _files_differ(table: IcebergTable, present: IcebergState) -> str:
    """How the files that the metadata names differ from those of the dataset."""
    addresses, snapshot = table.addresses, table.wanted.snapshot
    if present.metadata["location"] != addresses.location:
        return f"its Iceberg metadata names files in {present.metadata['location']}"
    try:
        listed = list(named_files(addresses, present.snapshot["manifest-list"]))
    except ObjectNotFoundError as error:
        return f"its Iceberg metadata names a file that is missing: {error}"
    except FormatError as error:
        return str(error)
    found = set(listed)
    right = {addresses.address(key) for key in snapshot.file_column("key").to_pylist()}
    if len(listed) != len(found):
        return f"its manifests name {counted(len(listed) - len(found), 'file')} twice"
    if found == right:
        return ""
    lost, gained = len(found - right), len(right - found)
    return (
        f"its manifests name other files: {counted(lost, 'file')} too many, "
        f"{counted(gained, 'file')} missing"
    )


def _verify_with_pyiceberg(wanted: Wanted, present: IcebergState) -> str:
    """What pyiceberg finds wrong with a published dataset; empty if it finds the same files.

    Empty too without the package pyiceberg. It takes the metadata as they were compared, because
    its properties name classes that it calls, and it reads no file but manifests of this store.
    """
    if find_spec("pyiceberg") is None:
        return ""
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.table import StaticTable
    from pyiceberg.table.metadata import TableMetadataUtil

    addresses, snapshot = addresses_of(wanted, present), wanted.snapshot
    address = addresses.address(metadata_key(snapshot.uuid, present.version))
    io: Any = _ManifestReader(addresses)
    try:
        metadata = TableMetadataUtil.parse_obj({**present.metadata})
        table = StaticTable((snapshot.uuid,), metadata, address, io, NoopCatalog(""))
        found = [task.file.file_path for task in table.scan().plan_files()]
    except Exception as error:  # noqa: BLE001 (whatever it says is reported)
        return f"pyiceberg cannot read its Iceberg metadata: {error}"
    keys = snapshot.file_column("key").to_pylist()
    if sorted(found) != sorted(addresses.address(key) for key in keys):
        return f"pyiceberg finds {len(found):,} files, but not the right {len(keys):,}"
    names = [field.name for field in table.schema().fields]
    if names != snapshot.schema.names:
        return f"pyiceberg finds the columns {', '.join(names)}"
    return ""


@dataclass(frozen=True)
class _ManifestReader:
    """What pyiceberg needs of a `FileIO` to plan a scan."""

    addresses: Addresses

    def new_input(self, location: str) -> _ManifestInput:
        """A file at an address."""
        return _ManifestInput(self.addresses, location)


@dataclass(frozen=True)
class _ManifestInput:
    """What pyiceberg needs of an `InputFile`."""

    addresses: Addresses
    location: str

    def open(self, seekable: bool = True) -> BytesIO:
        """The content of a manifest or manifest list; raises a `FormatError` for another file."""
        return BytesIO(checked_content(self.addresses, self.location))
