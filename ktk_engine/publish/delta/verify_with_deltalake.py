"""Checks with delta-rs, if it is installed, that it reads a Delta log as this library does."""

from __future__ import annotations

from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore


def verify_with_deltalake(store: ObjectStore, snapshot: Snapshot) -> str:
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
