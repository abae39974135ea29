"""JSON documents of ours with their own digest, so that a flipped bit is noticed.

The digest is the first key and covers the bytes after it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from ktk_engine.errors import FormatError, UnsupportedFormatError
from ktk_engine.format.parse_json import parse_json, render_json
from ktk_engine.messages import Message, Remedy

KEY = "sha256"
_START = b'{\n "sha256": "'
_BEHIND = b'",'
_DIGITS = 64


def render_checksummed(document: Mapping[str, Any]) -> bytes:
    """Render a non-empty JSON document without the key `sha256` together with its digest.

    Raises a `FormatError` for half of a surrogate pair.
    """
    body = render_json(document, indent=1)
    return _START + hashlib.sha256(body).hexdigest().encode() + _BEHIND + body[1:]


def read_checksummed(data: bytes, checksummed_since: int, newest: int, what: str) -> dict[str, Any]:
    """Read a document, verify its digest, and drop it.

    Documents with a `format` below `checksummed_since` have no digest. A `format` above `newest`
    raises an `UnsupportedFormatError`, since a later release wrote it. Other damage raises a
    `FormatError` or ValueError.
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
    number = int(document["format"])
    if number > newest:  # which may have another digest
        raise UnsupportedFormatError(
            Message(
                f"{what} has format {number}; this version reads formats up to {newest}. ",
                Remedy("upgrade"),
            )
        )
    if not has_checksum and (KEY in document or number >= checksummed_since):
        raise ValueError("its digest is missing")
    return document
