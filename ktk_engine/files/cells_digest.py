"""The digest of a file's cells: files with the same digest hold the same cells in order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.errors import DataError
from ktk_engine.format.file_digest import shorten
from ktk_engine.types.to_container import to_container


class CellsDigest:
    """Digests the cells of a file while it is written, whatever pieces its rows come in.

    Values are digested in the containers of their classes, as they are compared: columns of
    different physical types may hold the same cells. Nulls and nested values have no digest.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._parts: dict[str, dict[str, Any]] = {}
        self._is_digestible = bool(names)

    def add(self, rows: pa.Table) -> None:
        """Add the next rows."""
        for name in self._names if self._is_digestible else ():
            pieces = _pieces(rows[name])
            if pieces is None:
                self._is_digestible = False
                return
            hashes = self._parts.setdefault(name, {part: hashlib.sha256() for part in pieces})
            for part, piece in pieces.items():
                hashes[part].update(piece)

    def digest(self) -> bytes | None:
        """The first 16 bytes of a SHA-256 of names, types and values; None if there is none."""
        if not self._is_digestible or not self._parts:
            return None
        whole = hashlib.sha256()
        for name in self._names:
            found = {part: value.hexdigest() for part, value in self._parts[name].items()}
            whole.update(repr((name, found)).encode())
        return shorten(whole)


def _pieces(column: pa.ChunkedArray) -> dict[str, Any] | None:
    """The bytes of values without nulls, by kind; None if they cannot be digested."""
    try:
        values = to_container(column)
    except DataError:  # finer than any container
        return None
    t = values.type
    if values.null_count:
        return None
    if pat.is_boolean(t):
        values = values.cast(pa.int8())
    if pat.is_string(t) or pat.is_binary(t):
        lengths = pc.binary_length(values).cast(pa.int64())
        ends = np.frombuffer(values.buffers()[1], np.int32)[values.offset :][: len(values) + 1]
        texts = _buffer(values, 2, int(ends[0]), int(ends[-1])) if len(values) else b""
        return {f"lengths of {t}": lengths.to_numpy(), str(t): texts}
    if pat.is_primitive(values.type) or pat.is_decimal(t):
        width = values.type.bit_width // 8
        start = values.offset * width
        return {str(t): _buffer(values, 1, start, start + len(values) * width)}
    return None


def _buffer(values: pa.Array, number: int, start: int, end: int) -> memoryview:
    """Bytes of one of an array's buffers."""
    return memoryview(values.buffers()[number] or b"")[start:end]
