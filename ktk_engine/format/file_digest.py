"""What a snapshot records of a parquet file, so that readers notice damage.

Pages carry checksums of their own. What no checksum of Parquet covers is the file's tail: the page
index and the footer, which say where pages lie, what types they hold and which of them a reader may
skip. So readers verify the tail by its digest and let pages be verified as they are read. The
digest of the whole file is for those that read all of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ktk_engine.errors import FormatError, ObjectNotFoundError
from ktk_engine.messages import Message, Remedy
from ktk_engine.store.interface import ObjectStore

# What reading a damaged file may raise: Arrow's own errors are among the built-in ones too.
DAMAGE = (
    pa.ArrowException,
    AttributeError,
    KeyError,
    MemoryError,
    OSError,
    OverflowError,
    TypeError,
    ValueError,
)
_DIGEST_BYTES = 16
_PIECE_BYTES = 1 << 20
_FOOTER_END = 8  # length of the footer, and the magic number


@dataclass(frozen=True)
class FileDigest:
    """Sizes and digests of one file.

    Attributes:
        size: its size in bytes.
        tail: size of its tail in bytes: all that follows the last page.
        tail_digest: first 16 bytes of the tail's SHA-256.
        digest: first 16 bytes of the whole file's SHA-256.
    """

    size: int
    tail: int
    tail_digest: bytes
    digest: bytes

    def as_json(self) -> dict[str, Any]:
        """Give it as data that JSON can hold."""
        return {
            "size": self.size,
            "tail": self.tail,
            "tail_digest": self.tail_digest.hex(),
            "digest": self.digest.hex(),
        }


def shorten(sha256: Any) -> bytes:
    """Give the part of a SHA-256 that is recorded.

    Args:
        sha256: a hash object of `hashlib`.
    """
    digest: bytes = sha256.digest()[:_DIGEST_BYTES]
    return digest


def digest_of_json(content: Mapping[str, Any]) -> FileDigest:
    """Make a digest of what `as_json` gave.

    Raises:
        KeyError, TypeError, ValueError: it is something else.
    """
    return FileDigest(
        int(content["size"]),
        int(content["tail"]),
        bytes.fromhex(content["tail_digest"]),
        bytes.fromhex(content["digest"]),
    )


def digest_of_file(data: bytes) -> FileDigest:
    """Make the digest of a parquet file without a page index.

    Args:
        data: its content.
    """
    footer = int.from_bytes(data[-_FOOTER_END : 4 - _FOOTER_END], "little")
    tail = footer + _FOOTER_END
    return FileDigest(
        len(data),
        tail,
        shorten(hashlib.sha256(data[len(data) - tail :])),
        shorten(hashlib.sha256(data)),
    )


def read_tail(store: ObjectStore, key: str, expected: FileDigest) -> bytes:
    """Read the tail of a file and verify it.

    Raises:
        FormatError: it is not what was written.
        ObjectNotFoundError: there is no such file.
    """
    tail = store.get_range(key, expected.size - expected.tail, expected.tail)
    if shorten(hashlib.sha256(tail)) != expected.tail_digest:
        raise FormatError(damaged(store, key, "its footer is not the one that was written"))
    return tail


def read_whole(store: ObjectStore, key: str, expected: FileDigest) -> bytes:
    """Read a file and verify it.

    Raises:
        FormatError: it is not what was written.
        ObjectNotFoundError: there is no such file.
    """
    data = store.get(key)
    if len(data) != expected.size:
        reason = f"it has {len(data):,} bytes, {expected.size:,} were written"
        raise FormatError(damaged(store, key, reason))
    if shorten(hashlib.sha256(data)) != expected.digest:
        raise FormatError(damaged(store, key, "its content is not what was written"))
    return data


def verify_whole(store: ObjectStore, key: str, expected: FileDigest) -> None:
    """Verify a file as `read_whole` does, without keeping its content.

    Raises:
        FormatError: it is not what was written.
        ObjectNotFoundError: there is no such file.
    """
    found = hashlib.sha256()
    with store.open_read(key) as source:
        while piece := source.read(_PIECE_BYTES):
            found.update(piece)
    if shorten(found) != expected.digest:
        raise FormatError(damaged(store, key, "its content is not what was written"))


@contextmanager
def named_damage(store: ObjectStore, key: str) -> Iterator[None]:
    """Let what reading a file raises name the file, and say what to do.

    Args:
        store: where it lies.
        key: its key.

    Raises:
        FormatError: the file is damaged.
        ObjectNotFoundError: it is missing.
    """
    try:
        yield
    except ObjectNotFoundError as error:
        raise missing(store, key) from error
    except FormatError as error:
        if key in str(error):
            raise
        raise FormatError(damaged(store, key, error)) from error
    except DAMAGE as error:
        raise FormatError(damaged(store, key, error)) from error


def damaged(store: ObjectStore, key: str, reason: object) -> Message:
    """Say that a file is damaged, and what to do."""
    if store.is_source:  # it may be sound, and is not ours to restore
        said = str(reason).rstrip(".")
        return Message(
            f"The file {store.shown(key)} of {store.url} cannot be read: {said}. Ask for another "
            "copy of it, or leave it out of ",
            Remedy("location"),
            ".",
        )
    return Message(
        f"The file {key} of {store.url} is damaged: {reason}. Restore it from a backup, or ",
        Remedy("rebuild"),
        ". ",
        Remedy("check_bytes"),
        " lists every damaged file.",
    )


def missing(store: ObjectStore, key: str) -> ObjectNotFoundError:
    """The error for a committed file that is gone."""
    if store.is_source:
        return ObjectNotFoundError(
            f"The file {store.shown(key)} of {store.url} has gone while it was read. Run it again."
        )
    return ObjectNotFoundError(
        Message(
            f"The file {key} of {store.url} is missing, but committed. Restore it from a backup, "
            "or ",
            Remedy("rebuild"),
            ". ",
            Remedy("check_files"),
            " lists every missing file.",
        )
    )
