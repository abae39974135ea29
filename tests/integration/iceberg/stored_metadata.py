"""What is stored of the table `t` for readers of Iceberg: metadata, manifests, snapshots."""

from __future__ import annotations

from pathlib import Path

from ktk_engine import Store
from ktk_engine.publish.iceberg.iceberg_metadata import (
    IcebergState,
    metadata_key,
    read_metadata,
)
from tests.integration.delta.readers import in_order
from tests.integration.iceberg.readers import by_pyiceberg, table_of
from tests.support.published_table import url_of


def folder(store) -> Path:
    return store.root / "t" / "iceberg" / "metadata"


def newest(store) -> IcebergState:
    """The newest version of the metadata."""
    return read_metadata(store, "t")


def file_of(store, version: int) -> Path:
    """A version of the metadata."""
    return store.root / metadata_key("t", version)


def lists(store) -> list[Path]:
    return sorted(folder(store).glob("*list.avro"))


def manifests(store) -> list[Path]:
    """All manifests, also those that the newest version does not name."""
    return sorted(folder(store).glob("*.*-*.avro"))


def numbers(store) -> list[int]:
    """The values of column `x` in the current snapshot."""
    return sorted(by_pyiceberg(url_of(store))["x"].to_pylist())


def time_travels(store) -> list[int]:
    """Check that readers see the rows of our version at each snapshot; gives these versions."""
    ours, seen = Store.of(store).table("t"), []
    table = table_of(url_of(store))
    for item in table.snapshots():
        seen.append(int(item.summary["ktk.version"]))
        found = table.scan(snapshot_id=item.snapshot_id).to_arrow()
        then = ours.at(version=seen[-1]).query().to_arrow(engine="local")
        assert found.schema.names == then.schema.names
        assert in_order(found) == in_order(then), seen[-1]
        assert found.num_rows == int(item.summary["total-records"])
    return seen


def specs_fit(store) -> None:
    """Check what readers in Java need of the partition specs: they bind all of them at once."""
    state = newest(store)
    fields = {field["name"]: field["id"] for field in state.schema["fields"]}
    items = [item for spec in state.metadata["partition-specs"] for item in spec["fields"]]
    for item in items:
        assert item["source-id"] in fields.values()
        assert fields.get(item["name"], item["source-id"]) == item["source-id"]
    given = [item["field-id"] for item in items]
    assert state.metadata["last-partition-id"] >= max(given, default=999)
