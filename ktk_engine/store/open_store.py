"""Opens a store from its address."""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ktk_engine.errors import ConfigurationError
from ktk_engine.store.cloud.address import FORMS, SCHEMES
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.local.local_store import LocalStore

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://|([A-Za-z][A-Za-z0-9+.\-]+):")


def open_store(url: str | Path, options: Mapping[str, Any] | None = None) -> ObjectStore:
    """Open the store at an address without reading or creating anything.

    The address is a path of the local disk, in which `~` is the home folder, a percent-encoded URL
    `file:///...`, or an object store: `s3://bucket/prefix`, `gs://...`, `az://...`, `abfss://...`.
    Only object stores have options, which may hold keys. Raises a `ConfigurationError` for other
    addresses, and for a folder named like `x=y`, which Spark would read as a partition column
    (tried with Spark 4.3).
    """
    if not isinstance(url, str | Path):
        raise ConfigurationError(
            f"the address of a store must be a path or a URL, as text or as a Path, but is {url!r}"
        )
    if options is not None and not isinstance(options, Mapping):
        # Its value may be a secret.
        raise ConfigurationError(
            "storage_options must be a mapping of settings of an object store to their values, "
            f"but is of type {type(options).__name__}"
        )
    if isinstance(url, str) and cloud_of(url):
        from ktk_engine.store.cloud.open_cloud import open_cloud

        return open_cloud(url, options or {})
    if options:
        raise ConfigurationError(
            f"only object stores have options, and {url} is a folder. Leave out "
            f"{', '.join(sorted(map(str, options)))}"
        )
    path = os.path.expanduser(url) if isinstance(url, Path) else path_of_url(url)
    if path.startswith("~"):
        raise ConfigurationError(
            f"the store's path {path!r} starts at a home folder that this machine does not know. "
            f"Write the whole path, or ./{path} for a folder of that name"
        )
    if not path or "\0" in path:
        raise ConfigurationError(f"the store's path {path!r} is empty or contains a NUL character")
    try:
        root = os.path.abspath(path)
    except OSError as error:
        raise ConfigurationError(
            f"the store's path {path!r} is relative to the current folder, which is gone: go to "
            "another folder, or give the whole path"
        ) from error
    for folder in root.split("/"):
        if folder.endswith(":") and folder[:-1].lower() in SCHEMES:
            raise ConfigurationError(
                f"the store {root!r} would be a folder named {folder!r} on the local disk. For an "
                f"object store write two slashes: {folder}//bucket/prefix"
            )
        if "=" in folder:
            raise ConfigurationError(
                f"the store {root!r} is in a folder named {folder!r}; Spark would read that as "
                "a partition column of every dataset. Use a folder without '=' in its path"
            )
    return LocalStore(root)


def cloud_of(url: str) -> str:
    """The cloud of an address: `s3`, `gs` or `az`; empty for a path or a `file:` URL."""
    match = _SCHEME.match(url)
    scheme = SCHEMES.get((match[1] or "").lower(), "") if match else ""
    return "az" if scheme == "abfss" else scheme


def is_url(address: str) -> bool:
    """Whether an address is a URL of any scheme, and no path."""
    return _SCHEME.match(address) is not None


def path_of_url(url: str) -> str:
    """The path of a local folder; raises a `ConfigurationError` for a URL of another scheme."""
    match = _SCHEME.match(url)
    if match is None:
        return os.path.expanduser(url)
    scheme = (match[1] or match[2]).lower()
    if scheme in SCHEMES and url.startswith("/", match.end()):
        return url  # one slash is missing, which `open_store` says
    if scheme != "file" or "/" not in url[match.end() - 1 : match.end() + 1]:
        # Show only the scheme: such URLs often contain credentials.
        raise ConfigurationError(
            f"stores of the scheme '{match[0]}' are not supported. Use a path of the local disk "
            f"(./name if it has a colon), file:///..., {FORMS}"
        )
    parts = urllib.parse.urlsplit(url)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        raise ConfigurationError(
            "a file URL has neither a host nor a query nor a fragment: write 'file:///path', "
            "with '?' and '#' percent-encoded"
        )
    return urllib.parse.unquote(parts.path, errors="surrogateescape")
