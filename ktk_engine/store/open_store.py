"""From a store's address to the store."""

from __future__ import annotations

import os
import re
import urllib.parse
from pathlib import Path

from ktk_engine.errors import ConfigurationError
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.local.local_store import LocalStore

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://|(file):/", re.IGNORECASE)


def open_store(url: str | Path) -> ObjectStore:
    """Open the store at an address. Nothing is read or created.

    Args:
        url: a path of the local disk (a relative one starts at the current folder), or a URL
            `file:///...`, percent-encoded.

    Returns:
        The store.

    Raises:
        ConfigurationError: the address is neither a path nor a URL of a supported scheme, or a
            folder on the way is named like `x=y`, which Spark would read as a partition column
            (from trials with Spark 4.3).
    """
    path = os.fspath(url) if isinstance(url, Path) else _path_of_url(url)
    if not path or "\0" in path:
        raise ConfigurationError(f"the store's path {path!r} is empty or contains a NUL character")
    try:
        root = os.path.abspath(path)
    except OSError as error:
        raise ConfigurationError(
            f"the store's path {path!r} starts at the current folder, which is gone: change to "
            "another folder, or give the whole path"
        ) from error
    for folder in root.split("/"):
        if "=" in folder:
            raise ConfigurationError(
                f"the store {root!r} lies in a folder named {folder!r}; Spark would read that as "
                "a partition column of every dataset. Use a folder without '=' in its path"
            )
    return LocalStore(root)


def _path_of_url(url: str) -> str:
    match = _SCHEME.match(url)
    if match is None:
        return url
    scheme = (match[1] or match[2]).lower()
    if scheme != "file":
        # Only the scheme: such URLs often contain credentials.
        raise ConfigurationError(
            f"stores of the scheme '{scheme}://' are not supported yet; "
            "use a path of the local disk or 'file:///...'"
        )
    parts = urllib.parse.urlsplit(url)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        raise ConfigurationError(
            "a file URL has neither a host nor a query nor a fragment: write 'file:///path', "
            "with '?' and '#' percent-encoded"
        )
    return urllib.parse.unquote(parts.path, errors="surrogateescape")
