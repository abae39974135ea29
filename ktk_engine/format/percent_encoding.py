"""Percent encoding of names and values in keys.

See docs/design/kartothek-format.md, Percent encoding.
"""

from __future__ import annotations

import urllib.parse

from ktk_engine.errors import FormatError


def quote(value: str | bytes) -> str:
    """Encode a name or value as a segment of a key, or a part of one; bytes one by one.

    As in Kartothek, `A-Z a-z 0-9 - . _ ~` stay and every other byte of UTF-8 becomes `%XX`. Unlike
    in Kartothek, `/` and the values `.` and `..` are encoded too (decision 4); Kartothek reads all
    of these.
    """
    encoded = urllib.parse.quote(value, safe="")
    return encoded.replace(".", "%2E") if encoded in (".", "..") else encoded


def unquote(text: str) -> str:
    """Decode a percent-encoded text; `+` stays a plus, and broken escapes stay as they are.

    Raises a `FormatError` if the decoded bytes are not UTF-8.
    """
    try:
        return unquote_bytes(text).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{text!r} is not percent-encoded UTF-8: {error.reason}") from error


def unquote_bytes(text: str) -> bytes:
    """Decode a percent-encoded text to bytes, for binary partition columns."""
    try:
        return urllib.parse.unquote_to_bytes(text)
    except UnicodeEncodeError as error:
        raise FormatError(f"{text!r} is not valid Unicode") from error
