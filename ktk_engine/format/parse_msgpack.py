"""Parses zstd-compressed msgpack from a store, within limits.

A few hundred bytes can expand to gigabytes, so the limits depend on the size of the file: in a real
document each file has its own name, which takes some bytes however well it is compressed.
"""

from __future__ import annotations

from typing import Any

import msgpack
import pyarrow as pa

from ktk_engine.errors import FormatError
from ktk_engine.format.parse_json import (
    MAX_BYTES,
    MAX_VALUES,
    check_count,
    check_depth,
    check_size,
    unique_keys,
)

_PIECE = 1 << 20
_SMALL_BYTES, _EXPANSION = 16 << 20, 1_000
_SMALL_VALUES, _VALUES_A_BYTE = 100_000, 20


def parse_msgpack(data: bytes, what: str) -> Any:
    """Parse msgpack in a zstd frame, with unique texts as keys of maps.

    Raises a `FormatError` for anything else, and an `UnsupportedFormatError` beyond the limits of
    size, depth and values.
    """
    content = _decompressed(data, what)
    largest = min(MAX_VALUES, _SMALL_VALUES + _VALUES_A_BYTE * len(data))
    counted = _Counter(what, largest)
    try:
        found = msgpack.unpackb(
            content,
            raw=False,
            strict_map_key=True,
            max_ext_len=0,
            max_array_len=min(largest, len(content)),
            max_map_len=min(largest, len(content)),
            object_pairs_hook=counted.map,
            list_hook=counted.list,
        )
        check_depth(found, what)
    except (ValueError, MemoryError, msgpack.UnpackException) as error:
        raise FormatError(f"{what} is not valid msgpack: {error}") from error
    return found


def _decompressed(data: bytes, what: str) -> bytes:
    """Decompress piece by piece, since the size in the frame may be wrong."""
    largest = min(MAX_BYTES, _SMALL_BYTES + _EXPANSION * len(data))
    pieces: list[bytes] = []
    size = 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            while piece := stream.read(_PIECE):
                pieces.append(piece)
                size += len(piece)
                check_size(size, largest, what)
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"{what} is not a zstd frame: {error}") from error
    return b"".join(pieces)


class _Counter:
    """Counts values as they are unpacked, to stop before there are too many."""

    def __init__(self, what: str, largest: int) -> None:
        self._what = what
        self._largest = largest
        self._count = 0

    def map(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        self._add(len(pairs))
        return unique_keys(pairs)

    def list(self, items: list[Any]) -> list[Any]:
        self._add(len(items))
        return items

    def _add(self, values: int) -> None:
        self._count += 1 + values
        check_count(self._count, self._what, self._largest)
