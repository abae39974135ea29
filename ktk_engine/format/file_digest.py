"""What a snapshot records of a parquet file, so that readers notice damage.

Pages carry checksums of their own. No checksum of Parquet covers the tail of a file: the page index
and the footer, which say where pages are, their types, and which ones a reader may skip. Readers
therefore verify the tail by its digest, and Arrow verifies pages as they are read. The digest of
the whole file is for those that read all of it.
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

# What reading a damaged file may raise; Arrow's errors derive from built-in ones.
DAMAGE = (
    pa.ArrowException,
    AttributeError,
    KeyError,
    MemoryError,
    OSError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
_DIGEST_BYTES = 16
_PIECE_BYTES = 1 << 20
_FOOTER_END = 8  # length of the footer, and the magic number


@dataclass(frozen=True)
class FileDigest:
    """Sizes in bytes and digests of one file."""

    size: int
    tail: int  # size of all that follows the last page
    tail_digest: bytes  # first 16 bytes of the SHA-256
    digest: bytes  # of the whole file, likewise

    def as_json(self) -> dict[str, Any]:
        """Give it as JSON data."""
        return {
            "size": self.size,
            "tail": self.tail,
            "tail_digest": self.tail_digest.hex(),
            "digest": self.digest.hex(),
        }


def shorten(sha256: Any) -> bytes:
    """The recorded part of a SHA-256, given as a hash object of `hashlib`."""
    digest: bytes = sha256.digest()[:_DIGEST_BYTES]
    return digest


def digest_of_json(content: Mapping[str, Any]) -> FileDigest:
    """Read what `as_json` gave; raises a KeyError, TypeError or ValueError for anything else."""
    return FileDigest(
        int(content["size"]),
        int(content["tail"]),
        bytes.fromhex(content["tail_digest"]),
        bytes.fromhex(content["digest"]),
    )


def digest_of_file(data: bytes) -> FileDigest:
    """The digest of a parquet file without a page index."""
    footer = int.from_bytes(data[-_FOOTER_END : 4 - _FOOTER_END], "little")
    tail = footer + _FOOTER_END
    return FileDigest(
        len(data),
        tail,
        shorten(hashlib.sha256(data[len(data) - tail :])),
        shorten(hashlib.sha256(data)),
    )


def read_tail(store: ObjectStore, key: str, expected: FileDigest) -> bytes:
    """Read the tail of a file and verify it; raises a `FormatError` if it was changed."""
    tail = store.get_range(key, expected.size - expected.tail, expected.tail)
    if shorten(hashlib.sha256(tail)) != expected.tail_digest:
        raise FormatError(damaged(store, key, "its footer is not the one that was written"))
    return tail


def read_whole(store: ObjectStore, key: str, expected: FileDigest) -> bytes:
    """Read a file and verify it; raises a `FormatError` if it was changed."""
    data = store.get(key)
    if len(data) != expected.size:
        reason = f"it has {len(data):,} bytes, {expected.size:,} were written"
        raise FormatError(damaged(store, key, reason))
    if shorten(hashlib.sha256(data)) != expected.digest:
        raise FormatError(damaged(store, key, "its content is not what was written"))
    return data


def verify_whole(store: ObjectStore, key: str, expected: FileDigest) -> None:
    """Verify a file as `read_whole` does, without keeping its content."""
    found = hashlib.sha256()
    with store.open_read(key) as source:
        while piece := source.read(_PIECE_BYTES):
            found.update(piece)
    if shorten(found) != expected.digest:
        raise FormatError(damaged(store, key, "its content is not what was written"))


@contextmanager
def named_damage(store: ObjectStore, key: str) -> Iterator[None]:
    """Turn errors of reading a file into a `FormatError` that names it and says what to do.

    A missing file becomes an `ObjectNotFoundError`.
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
    if store.is_source:  # may be fine, and is not ours to restore
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
    """The error for a missing committed file."""
    if store.is_source:
        return ObjectNotFoundError(
            f"The file {store.shown(key)} of {store.url} was deleted while it was read. Run it "
            "again."
        )
    return ObjectNotFoundError(
        Message(
            f"The committed file {key} of {store.url} is missing. Restore it from a backup, or ",
            Remedy("rebuild"),
            ". ",
            Remedy("check_files"),
            " lists every missing file.",
        )
    )
