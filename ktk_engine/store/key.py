"""Keys: the names of objects in a store. They are built and validated here and nowhere else."""

from __future__ import annotations

import re

from ktk_engine.errors import InvalidKeyError

MAX_SEGMENT_BYTES = 255
MAX_KEY_BYTES = 1024
# So that each name that is made of a dataset's is one segment of a key: its document in Kartothek's
# longest encoding has 33 letters more, its snapshot after many attempts fewer.
MAX_UUID_LETTERS = 222

_FORBIDDEN_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f\\]")
_UUID = re.compile(r"[a-zA-Z0-9+\-_]+")


def validate_key(key: str) -> str:
    """Check that a key is a safe relative path.

    A key consists of segments separated by `/`. No segment is empty, `.` or `..`; there are no
    backslashes and no control characters. So a key normalises to itself and cannot leave the
    folder under which it is used (Kartothek follows
    `../outside` in its documents).

    Args:
        key: the key. A segment has at most 255 bytes in UTF-8, the key at most 1024.

    Returns:
        The key, unchanged.

    Raises:
        InvalidKeyError: the key breaks a rule.
    """
    segments = key.split("/")
    if "" in segments or "." in segments or ".." in segments:
        raise InvalidKeyError(
            f"invalid key {key!r}: a path segment is empty, '.' or '..'; "
            "keys are relative paths without them"
        )
    # The usual key is printable ASCII: one fast test instead of the thorough ones.
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


def join_key(*parts: str) -> str:
    """Join parts to a key.

    Args:
        *parts: keys or segments, each without a leading or trailing `/`.

    Returns:
        The parts with `/` between them.

    Raises:
        InvalidKeyError: the result is not a valid key; also when a part is empty.
    """
    return validate_key("/".join(parts))


def inside(key: str, folder: str) -> str:
    """Check that a key lies inside a folder; for every key that was read from a document.

    Args:
        key: the key.
        folder: the key of the folder, for example a dataset's uuid.

    Returns:
        The key, unchanged.

    Raises:
        InvalidKeyError: the key is invalid, or lies elsewhere.
    """
    validate_key(key)
    if not key.startswith(folder + "/"):
        raise InvalidKeyError(f"invalid key {key!r}: it lies outside the folder {folder!r}")
    return key


def validate_uuid(uuid: str) -> str:
    r"""Check the uuid of a dataset: `[a-zA-Z0-9+\-_]+`, as in Kartothek.

    Args:
        uuid: the uuid.

    Returns:
        The uuid, unchanged.

    Raises:
        InvalidKeyError: it contains another character, or is empty or too long for a file name.
    """
    if not isinstance(uuid, str):
        raise InvalidKeyError(f"the name of a cube or dataset must be text, but is {uuid!r}")
    if not is_uuid(uuid):
        raise InvalidKeyError(
            f"invalid dataset uuid {uuid!r}: only letters, digits, '+', '-' and '_' are allowed"
        )
    return validate_key(uuid)


def check_new_uuid(uuid: str) -> str:
    """Check the uuid that a new dataset is to have; one that exists may be longer.

    Args:
        uuid: the uuid.

    Returns:
        The uuid, unchanged.

    Raises:
        InvalidKeyError: it contains another character, or the names of files have no room for it.
    """
    if isinstance(uuid, str) and len(uuid) > MAX_UUID_LETTERS:
        raise InvalidKeyError(
            f"the name {uuid[:40]}... has {len(uuid)} letters; the name of a dataset, with that of "
            f"its cube and `++`, has at most {MAX_UUID_LETTERS}. Nothing was written"
        )
    return validate_uuid(uuid)


def is_uuid(uuid: str) -> bool:
    """Tell whether a text has the form of a dataset's uuid.

    Args:
        uuid: the text.

    Returns:
        Whether `validate_uuid` accepts its characters.
    """
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
