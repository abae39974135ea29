"""JSON documents of ours that carry their own digest: a flipped bit makes no other document.

The digest is the first key, so that the bytes after it are what it was made of.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ktk_engine.errors import FormatError, UnsupportedFormatError
from ktk_engine.format.parse_json import parse_json
from ktk_engine.messages import Message, Remedy

KEY = "sha256"
_START = b'{\n "sha256": "'
_BEHIND = b'",'
_DIGITS = 64


def seal(document: Mapping[str, Any]) -> bytes:
    """Render a document with its digest.

    Args:
        document: what JSON can hold; not empty, and without the key `sha256`.
    """
    body = json.dumps(document, indent=1).encode()
    return _START + hashlib.sha256(body).hexdigest().encode() + _BEHIND + body[1:]


def unseal(data: bytes, sealed_since: int, newest: int, what: str) -> dict[str, Any]:
    """Read a document and verify its digest.

    Args:
        data: the document.
        sealed_since: the first value of its key `format` that goes with a digest; documents of
            older formats have none, and are read as they are.
        newest: the last value of that key which this version can read.
        what: what it is, for messages.

    Returns:
        The document without the digest.

    Raises:
        FormatError: it is not JSON that a store may hold, see `parse_json`.
        UnsupportedFormatError: a later release of this library wrote it.
        ValueError: it is damaged otherwise.
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
    is_sealed = data.startswith(_START)
    if is_sealed:
        start = len(_START) + _DIGITS
        body = b"{" + data[start + len(_BEHIND) :]
        if document.pop(KEY, "") != hashlib.sha256(body).hexdigest():
            raise ValueError("its content does not fit its digest")
    number = int(document["format"])
    if number > newest:  # whatever it is sealed by then
        raise UnsupportedFormatError(
            Message(
                f"{what} has format {number}; this version reads formats up to {newest}. ",
                Remedy("upgrade"),
            )
        )
    if not is_sealed and (KEY in document or number >= sealed_since):
        raise ValueError("its digest is missing")
    return document
