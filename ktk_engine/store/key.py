"""Keys, the names of objects in a store: built and validated only here."""

from __future__ import annotations

import re
from unicodedata import normalize

from ktk_engine.errors import InvalidKeyError

MAX_SEGMENT_BYTES = 255
MAX_KEY_BYTES = 1024
# So that each name made of a dataset's name is one segment of a key: its document in Kartothek's
# longest encoding has 33 more letters, its snapshot after many attempts fewer.
MAX_UUID_LETTERS = 222

_FORBIDDEN_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f\\]")
_UUID = re.compile(r"[a-zA-Z0-9+\-_]+")


def validate_key(key: str) -> str:
    """Return a key unchanged if it is a safe relative path, else raise an `InvalidKeyError`.

    Segments are separated by `/`. None is empty, `.` or `..`, and there are no backslashes or
    control characters. So a key cannot leave the folder under which it is used (Kartothek follows
    `../outside` in its documents). A segment has at most 255 bytes in UTF-8, a key at most 1024.
    """
    segments = key.split("/")
    if "" in segments or "." in segments or ".." in segments:
        raise InvalidKeyError(
            f"invalid key {key!r}: a path segment is empty, '.' or '..'; "
            "keys are relative paths without them"
        )
    # Most keys are printable ASCII: one fast test replaces the thorough ones.
    if key.isascii() and key.isprintable() and "\\" not in key:
        too_long = len(key) > MAX_KEY_BYTES or max(map(len, segments)) > MAX_SEGMENT_BYTES
    else:
        too_long = _validate_characters(key)
    if too_long:
        raise InvalidKeyError(
            f"invalid key {key!r}: at most {MAX_SEGMENT_BYTES} bytes in a path segment and "
            f"{MAX_KEY_BYTES} in the whole key are allowed"
        )
    return key


def folded(key: str) -> str:
    """A key as file systems compare it that ignore letter case and forms of Unicode.

    They list a folder under the spelling of who made it, which other keys may not share.
    """
    return key.lower() if key.isascii() else normalize("NFD", normalize("NFD", key).casefold())


def join_key(*parts: str) -> str:
    """Join keys or segments with `/`; raises an `InvalidKeyError` if the result is invalid."""
    return validate_key("/".join(parts))


def inside(key: str, folder: str) -> str:
    """Return a key unchanged if it is inside a folder, for keys that come from documents.

    Raises an `InvalidKeyError` otherwise.
    """
    validate_key(key)
    if not key.startswith(folder + "/"):
        raise InvalidKeyError(f"invalid key {key!r}: it is outside the folder {folder!r}")
    return key


def validate_uuid(uuid: str) -> str:
    r"""Return the uuid of a dataset unchanged if it matches `[a-zA-Z0-9+\-_]+`, as in Kartothek.

    Raises an `InvalidKeyError` otherwise, or if it is too long for a file name.
    """
    if not isinstance(uuid, str):
        raise InvalidKeyError(f"the name of a cube or dataset must be text, but is {uuid!r}")
    if not is_uuid(uuid):
        raise InvalidKeyError(
            f"invalid dataset uuid {uuid!r}: only letters, digits, '+', '-' and '_' are allowed"
        )
    return validate_key(uuid)


def check_new_uuid(uuid: str) -> str:
    """Return the uuid of a new dataset unchanged; existing ones may be longer.

    Raises an `InvalidKeyError` if it is invalid, or too long for the names of its files.
    """
    if isinstance(uuid, str) and len(uuid) > MAX_UUID_LETTERS:
        raise InvalidKeyError(
            f"the name {uuid[:40]}... has {len(uuid)} letters; the name of a dataset, with that of "
            f"its cube and `++`, has at most {MAX_UUID_LETTERS}. Nothing was written"
        )
    return validate_uuid(uuid)


def is_uuid(uuid: str) -> bool:
    """Tell whether `validate_uuid` accepts the characters of a text."""
    return _UUID.fullmatch(uuid) is not None


def _validate_characters(key: str) -> bool:
    """Check the characters of an unusual key, and return whether it is too long."""
    if _FORBIDDEN_CHARACTER.search(key) is not None:
        raise InvalidKeyError(f"invalid key {key!r}: control characters and '\\' are not allowed")
    try:
        encoded = key.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidKeyError(f"invalid key {key!r}: it is not valid Unicode") from error
    longest = max(len(segment) for segment in encoded.split(b"/"))
    return len(encoded) > MAX_KEY_BYTES or longest > MAX_SEGMENT_BYTES
