"""Opens an object store from its address and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ktk_engine.store.cloud.address import CloudAddress, parse_cloud_address
from ktk_engine.store.cloud.azure import Azure
from ktk_engine.store.cloud.cloud import Cloud, checked_options
from ktk_engine.store.cloud.cloud_store import CloudStore
from ktk_engine.store.cloud.gcs import GCS
from ktk_engine.store.cloud.s3 import S3

_CLOUDS: Mapping[str, tuple[type[Cloud], str]] = {
    "s3": (S3, "S3"),
    "gs": (GCS, "Google Cloud Storage"),
    "az": (Azure, "Azure"),
    "abfss": (Azure, "Azure"),
}


def open_cloud(url: str, options: Mapping[str, Any]) -> CloudStore:
    """Open an object store without any request.

    Raises a `ConfigurationError` if the address or a setting cannot be used.
    """
    address: CloudAddress = parse_cloud_address(url)
    cloud, name = _CLOUDS[address.scheme]
    return CloudStore(cloud(address, checked_options(name, options, cloud.known)))
