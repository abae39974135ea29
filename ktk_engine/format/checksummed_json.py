"""Our JSON documents with their own digest, so that a flipped bit is noticed.

The digest is the first key and covers the bytes after it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from ktk_engine.errors import FormatError, UnsupportedFormatError
from ktk_engine.format.own_format import check_format, with_format
from ktk_engine.format.parse_json import parse_json, render_json

KEY = "sha256"
_START = b'{\n "sha256": "'
_BEHIND = b'",'
_DIGITS = 64


def render_checksummed(document: Mapping[str, Any]) -> bytes:
    """Render a JSON document without the key `sha256` together with its format and its digest.

    Raises a `FormatError` for half of a surrogate pair.
    """
    body = render_json(with_format(document), indent=1)
    return _START + hashlib.sha256(body).hexdigest().encode() + _BEHIND + body[1:]


def read_checksummed(data: bytes, what: str) -> dict[str, Any]:
    """Read a document, verify its digest, and drop it.

    Raises an `UnsupportedFormatError` if another version wrote it that this one does not
    understand, and a `FormatError` or ValueError for damage.
    """
    try:
        document = parse_json(data, what)
    except UnsupportedFormatError:
        raise
    except FormatError as error:
        said = str(error).rstrip(".")
        raise FormatError(f"{said}. Restore it from a backup of the store.") from error
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    has_checksum = data.startswith(_START)
    if has_checksum:
        start = len(_START) + _DIGITS
        body = b"{" + data[start + len(_BEHIND) :]
        if document.pop(KEY, "") != hashlib.sha256(body).hexdigest():
            raise ValueError("its content does not fit its digest")
    check_format(document, what)  # another one may have another digest
    if not has_checksum:
        raise ValueError("its digest is missing")
    return document
