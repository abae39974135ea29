"""The stamp of our commits in a published document.

Kartothek drops unknown keys at the top of a document when it rewrites it, and keeps those in
`metadata`. So the stamp at the top says that the document is ours, and `metadata.ktk_base` says
on which of our versions another writer built.
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

# The stamp is the document's first key, so that the first kilobyte is enough to read it.
STAMP_BYTES = 1024
_START = re.compile(rb'\s*\{\s*"ktk_commit"\s*:\s*')
_SEPARATOR = b", "
_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


@dataclass(frozen=True)
class Stamp:
    """Which commit published a document.

    Attributes:
        version: the commit's number in its log.
        commit_id: the commit's id.
        sha256: digest of the document without the stamp, in hexadecimal.
    """

    version: int
    commit_id: str
    sha256: str


def digest(*parts: bytes | memoryview) -> str:
    """Compute the digest for a stamp.

    Args:
        parts: the rendered document without a stamp, in parts.

    Returns:
        Its SHA-256 in hexadecimal.
    """
    sha256 = hashlib.sha256()
    for part in parts:
        sha256.update(part)
    return sha256.hexdigest()


def add_stamp(stamp: Stamp, parts: Sequence[bytes]) -> bytes:
    """Put a stamp in front of a rendered document.

    Args:
        stamp: the stamp.
        parts: the rendered document without a stamp; the first one starts with `{`.

    Returns:
        The document with the stamp as its first key.
    """
    content = {
        "version": stamp.version,
        "commit_id": stamp.commit_id,
        "sha256": stamp.sha256,
    }
    start = f'{{"{STAMP_KEY}": {json.dumps(content)}'.encode()
    return b"".join([start, _SEPARATOR, parts[0][1:], *parts[1:]])


def read_stamp(first_bytes: bytes) -> Stamp | None:
    """Read the stamp of a document.

    Args:
        first_bytes: the document's first kilobyte, or all of it.

    Returns:
        The stamp, or None if another program wrote the document.

    Raises:
        FormatError: there is a stamp, but it is damaged.
    """
    found = _stamp_and_end(first_bytes)
    return None if found is None else found[0]


def stamp_is_valid(data: bytes) -> bool:
    """Tell whether a document is exactly what its stamp's commit published.

    Args:
        data: the whole document.

    Returns:
        False if there is no stamp, or the rest of the document has another digest.

    Raises:
        FormatError: there is a stamp, but it is damaged.
    """
    found = _stamp_and_end(data)
    if found is None:
        return False
    stamp, end = found
    rest = memoryview(data)[end:]  # a slice of bytes would copy them
    start = len(_SEPARATOR)
    return rest[:start] == _SEPARATOR and stamp.sha256 == digest(b"{", rest[start:])


def stamp_of(content: object) -> Stamp:
    """Make a stamp of its JSON form.

    Args:
        content: the parsed value of the key `ktk_commit`.

    Returns:
        The stamp.

    Raises:
        FormatError: a part is missing or of the wrong type.
    """
    if isinstance(content, dict):
        version, commit, sha256 = (content.get(k) for k in ("version", "commit_id", "sha256"))
        if type(version) is int and isinstance(commit, str) and isinstance(sha256, str):
            return Stamp(version, commit, sha256)
    raise FormatError(f"the stamp {STAMP_KEY!r} of a dataset document is damaged: {content!r}")


def _stamp_and_end(data: bytes) -> tuple[Stamp, int] | None:
    """The stamp, and the position behind its closing brace."""
    start = _START.match(data)
    if start is None:
        return None
    # We write ASCII; latin-1 keeps positions where the cut goes through another character.
    text = data[start.end() : start.end() + 1024].decode("latin-1")
    try:
        content, length = _DECODER.raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the stamp {STAMP_KEY!r} of a dataset document is damaged") from error
    return stamp_of(content), start.end() + length
