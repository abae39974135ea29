"""Takes bounds out of a Parquet footer, which Arrow's writer can only leave out of whole files.

A footer is a Thrift structure in the compact protocol. Only the edited fields are understood;
everything else is copied byte by byte, also what later versions of the format add.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

MAGIC = b"PAR1"

# Field or position in a list -> what to edit inside it; None drops a field.
Edits: TypeAlias = "Mapping[int, Edits | None]"

# Thrift's types in the compact protocol.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_VARINTS = frozenset({4, 5, 6})

# Numbers of fields in parquet.thrift. The counts of nulls and of distinct values stay.
_ROW_GROUPS, _COLUMNS, _META_DATA, _STATISTICS = 4, 1, 3, 12
_COLUMN_INDEX_OFFSET, _COLUMN_INDEX_LENGTH = 6, 7
_MAX, _MIN, _MAX_VALUE, _MIN_VALUE, _MAX_IS_EXACT, _MIN_IS_EXACT = 1, 2, 5, 6, 7, 8
_BOUNDS = dict.fromkeys((_MAX, _MIN, _MAX_VALUE, _MIN_VALUE, _MAX_IS_EXACT, _MIN_IS_EXACT))
_WITHOUT_BOUNDS: Edits = {
    _META_DATA: {_STATISTICS: _BOUNDS},
    _COLUMN_INDEX_OFFSET: None,
    _COLUMN_INDEX_LENGTH: None,
}


def footer_without_bounds(metadata: pq.FileMetaData, chunks: Iterable[tuple[int, int]]) -> bytes:
    """Render the end of a file with a footer in which some columns have no bounds.

    `chunks` are pairs of row group and column. Null counts stay. The result includes the length and
    the magic number.
    """
    groups: dict[int, dict[int, Edits]] = {}
    for group, column in chunks:
        groups.setdefault(group, {})[column] = _WITHOUT_BOUNDS
    edits: Edits = {_ROW_GROUPS: {n: {_COLUMNS: columns} for n, columns in groups.items()}}
    sink = pa.BufferOutputStream()
    metadata.write_metadata_file(sink)
    rendered = sink.getvalue().to_pybytes()
    plain = rendered[len(MAGIC) : -len(MAGIC) - 4]
    edited = _Editor(plain).struct(edits)
    return edited + len(edited).to_bytes(4, "little") + MAGIC


@dataclass
class _Editor:
    """Walks through a structure and copies it, edited."""

    data: bytes
    at: int = 0

    def struct(self, edits: Edits) -> bytes:
        """Copy a structure; field numbers are deltas, so all of them are written again."""
        out = bytearray()
        number = written = 0
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else _unzigzag(self._varint())
            kind &= 0x0F
            edit = edits.get(number, {})
            value = self._value(kind, edit or {}, in_struct=True)
            if edit is None:
                continue
            distance = number - written
            if 0 < distance < 16:
                out.append(distance << 4 | kind)
            else:
                out.append(kind)
                out += _varint(number << 1)
            out += value
            written = number
        return bytes(out) + b"\0"

    def _value(self, kind: int, edits: Edits, in_struct: bool = False) -> bytes:
        start = self.at
        if kind == _STRUCT:
            return self.struct(edits)
        if kind in (_LIST, _SET):
            return self._list(edits)
        if kind in (_TRUE, _FALSE):
            self.at += 0 if in_struct else 1  # the field's type is its value
        elif kind in _VARINTS:
            self._varint()
        elif kind == _BINARY:
            length = self._varint()
            self.at += length
        elif kind in (_BYTE, _DOUBLE):
            self.at += 1 if kind == _BYTE else 8
        elif kind == _MAP:
            self._skip_map()
        else:
            raise ValueError(f"unknown Thrift type {kind}")
        return self.data[start : self.at]

    def _list(self, edits: Edits) -> bytes:
        start = self.at
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        out = bytearray(self.data[start : self.at])
        for position in range(count):
            out += self._value(head & 0x0F, edits.get(position) or {})
        return bytes(out)

    def _skip_map(self) -> None:
        if count := self._varint():
            kinds = self._byte()
            for _ in range(count):
                self._value(kinds >> 4, {})
                self._value(kinds & 0x0F, {})

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        result = shift = 0
        while True:
            byte = self._byte()
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _unzigzag(number: int) -> int:
    return number >> 1 ^ -(number & 1)
