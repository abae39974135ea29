"""Percent encoding of names and values in keys.

See docs/design/kartothek-format.md, Percent encoding.
"""

from __future__ import annotations

import urllib.parse

from ktk_engine.errors import FormatError


def quote(value: str | bytes) -> str:
    """Encode a name or value, so that it is one segment of a key or part of one.

    As in Kartothek, `A-Z a-z 0-9 - . _ ~` stay and every other byte of the UTF-8 form becomes
    `%XX`. Unlike in Kartothek, `/` is encoded too, and so are the values `.` and `..`
    (decision 4); Kartothek reads all of these.

    Args:
        value: the text; or bytes, which are encoded one by one.

    Returns:
        The encoded text, ASCII only; empty for an empty value.
    """
    encoded = urllib.parse.quote(value, safe="")
    return encoded.replace(".", "%2E") if encoded in (".", "..") else encoded


def unquote(text: str) -> str:
    """Decode a percent-encoded text. `+` is not a blank, and broken escapes stay as they are.

    Args:
        text: the encoded text; may contain characters that need not be there unencoded.

    Returns:
        The decoded text.

    Raises:
        FormatError: the decoded bytes are not UTF-8.
    """
    try:
        return unquote_bytes(text).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{text!r} is not percent-encoded UTF-8: {error.reason}") from error


def unquote_bytes(text: str) -> bytes:
    """Decode a percent-encoded text to bytes; for binary partition columns.

    Args:
        text: the encoded text.

    Returns:
        The decoded bytes; characters that were not encoded are taken as UTF-8.

    Raises:
        FormatError: the text is not valid Unicode.
    """
    try:
        return urllib.parse.unquote_to_bytes(text)
    except UnicodeEncodeError as error:
        raise FormatError(f"{text!r} is not valid Unicode") from error
