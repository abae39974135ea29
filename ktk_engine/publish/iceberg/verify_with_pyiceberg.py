"""Checks with pyiceberg, if installed, that it reads Iceberg metadata as this library does."""

from __future__ import annotations

from importlib.util import find_spec

from ktk_engine.publish.iceberg.file_entries import address
from ktk_engine.publish.iceberg.iceberg_metadata import metadata_key, read_metadata
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore


def verify_with_pyiceberg(store: ObjectStore, snapshot: Snapshot) -> str:
    """What pyiceberg finds wrong with a published dataset; empty if it finds the same files.

    Empty too without the package pyiceberg, and on object stores, whose credentials it does not
    have.
    """
    if not store.url.startswith("file:") or find_spec("pyiceberg") is None:
        return ""
    from pyiceberg.table import StaticTable

    newest = read_metadata(store, snapshot.uuid).version
    try:
        table = StaticTable.from_metadata(address(store, metadata_key(snapshot.uuid, newest)))
        found = [task.file.file_path for task in table.scan().plan_files()]
    except Exception as error:  # noqa: BLE001 (whatever it says is reported)
        return f"pyiceberg cannot read its Iceberg metadata: {error}"
    keys = snapshot.file_column("key").to_pylist()
    if sorted(found) != sorted(address(store, key) for key in keys):
        return f"pyiceberg finds {len(found):,} files, and {len(keys):,} others are right"
    names = [field.name for field in table.schema().fields]
    if names != snapshot.schema.names:
        return f"pyiceberg finds the columns {', '.join(names)}"
    return ""
