"""The JSON documents that this library writes: their format number and their own digest.

The digest is the first key and covers the bytes after it, so that a flipped bit is noticed. See
docs/design/files-and-commits.md, Versions of the library.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

from ktk_engine.errors import FormatError, UnsupportedFormatError
from ktk_engine.format.parse_json import parse_json, render_json
from ktk_engine.messages import Remedy

FORMAT = 8  # those below were written before the first release
_KNOWN: frozenset[str] = frozenset()  # what documents may need
KEY = "sha256"
_START = b'{\n "sha256": "'
_BEHIND = b'",'
_DIGITS = 64


def with_format(document: Mapping[str, Any]) -> dict[str, Any]:
    """Say which format a document has, and what its readers and writers must know."""
    return {"format": FORMAT, "needs": [], **document}


def check_format(document: Mapping[str, Any], what: str) -> None:
    """Raise an `UnsupportedFormatError` unless this version understands a document.

    `what` is for messages. Raises a `KeyError`, `TypeError` or `ValueError` for damage.
    """
    number = int(document["format"])
    if number < FORMAT:
        raise UnsupportedFormatError(
            f"{what} has format {number}, which only versions before the first release wrote. This "
            "version does not read it, and nothing was changed. Build its cube or table in a new "
            "store."
        )
    if number > FORMAT:
        raise UnsupportedFormatError(
            f"{what} has format {number}; this version reads format {FORMAT}. ", Remedy("upgrade")
        )
    if unknown := sorted({str(need) for need in document["needs"]} - _KNOWN):
        raise UnsupportedFormatError(
            f"{what} needs features that this version does not know: {', '.join(unknown)}. ",
            Remedy("upgrade"),
        )


def others_of(document: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The keys that only later versions know, which a writer keeps."""
    named = {"format", "needs", *known}
    return {key: value for key, value in document.items() if key not in named}


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
