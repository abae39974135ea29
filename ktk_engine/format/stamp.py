"""The stamp of our commits in a published document.

Kartothek drops unknown top-level keys when it rewrites a document, and keeps those in `metadata`. A
stamp at the top thus says that we wrote the document, and `metadata.ktk_base` says which of our
versions another writer started from.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ktk_engine.errors import FormatError
from ktk_engine.format.parse_json import unique_keys

STAMP_KEY = "ktk_commit"
BASE_KEY = "ktk_base"

# The stamp is the first key, so that the first kilobyte is enough to read it.
STAMP_BYTES = 1024
_START = re.compile(rb'\s*\{\s*"ktk_commit"\s*:\s*')
_SEPARATOR = b", "
_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


@dataclass(frozen=True)
class Stamp:
    """The commit that published a document."""

    version: int  # its number in the log
    commit_id: str
    sha256: str  # of the document without the stamp, in hexadecimal


def digest(*parts: bytes | memoryview) -> str:
    """SHA-256 of a document, which may come in parts, in hexadecimal."""
    sha256 = hashlib.sha256()
    for part in parts:
        sha256.update(part)
    return sha256.hexdigest()


def add_stamp(stamp: Stamp, parts: Sequence[bytes]) -> bytes:
    """Put a stamp as the first key into a rendered document, whose first part starts with `{`."""
    content = {
        "version": stamp.version,
        "commit_id": stamp.commit_id,
        "sha256": stamp.sha256,
    }
    start = f'{{"{STAMP_KEY}": {json.dumps(content)}'.encode()
    return b"".join([start, _SEPARATOR, parts[0][1:], *parts[1:]])


def read_stamp(first_bytes: bytes) -> Stamp | None:
    """Read the stamp from the first kilobyte of a document; None if another program wrote it.

    Raises a `FormatError` if the stamp is damaged.
    """
    found = _stamp_and_end(first_bytes)
    return None if found is None else found[0]


def stamp_is_valid(data: bytes) -> bool:
    """Tell whether a document is exactly what its stamp's commit published."""
    found = _stamp_and_end(data)
    if found is None:
        return False
    stamp, end = found
    rest = memoryview(data)[end:]  # slicing bytes would copy them
    start = len(_SEPARATOR)
    return rest[:start] == _SEPARATOR and stamp.sha256 == digest(b"{", rest[start:])


def stamp_of(content: object) -> Stamp:
    """Read a stamp from the parsed value of the key `ktk_commit`."""
    if isinstance(content, dict):
        version, commit, sha256 = (content.get(k) for k in ("version", "commit_id", "sha256"))
        if type(version) is int and isinstance(commit, str) and isinstance(sha256, str):
            return Stamp(version, commit, sha256)
    raise FormatError(f"the stamp {STAMP_KEY!r} of a dataset document is damaged: {content!r}")


def _stamp_and_end(data: bytes) -> tuple[Stamp, int] | None:
    """The stamp, and the position after its closing brace."""
    start = _START.match(data)
    if start is None:
        return None
    # We write ASCII; latin-1 keeps positions even if the cut splits a character.
    text = data[start.end() : start.end() + 1024].decode("latin-1")
    try:
        content, length = _DECODER.raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the stamp {STAMP_KEY!r} of a dataset document is damaged") from error
    return stamp_of(content), start.end() + length
