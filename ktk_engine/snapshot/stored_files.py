"""The table of files of a stored snapshot, which decodes only what is needed.

A million files are 300 MB as a table, and 75 MB as stored. A plan for a few of them, or a small
commit, needs only some columns or some rows.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.errors import FormatError
from ktk_engine.format.file_digest import DAMAGE

# With fewer, waking Arrow's threads takes longer than decoding, above all on a busy machine.
_VALUES_OF_A_THREAD = 50_000
# Opening a file of few rows takes longer than decoding its columns, so what plans need is decoded
# together.
_FEW_FILES = 1_000
# The bytes that a column may decode to: these, and this multiple of the bytes of the file.
_FREE_BYTES = 64 << 20
_LARGEST_RATIO = 256


class EncodedFiles(ABC):
    """A table of files that decodes only the requested columns and rows."""

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """Number of files."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Types of the columns, in order."""

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self.schema.names)

    @abstractmethod
    def select(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all files, in their order."""

    @abstractmethod
    def some(self, mask: pa.BooleanArray, columns: Sequence[str]) -> pa.Table:
        """Decode some columns, at least one, of the files in the mask, and nothing else."""


# A table of files: an Arrow table, or one that is decoded on demand.
FileTable: TypeAlias = pa.Table | EncodedFiles


def some_files(files: FileTable, mask: pa.BooleanArray, columns: Sequence[str]) -> pa.Table:
    """Some columns, at least one, of the files in the mask; no copy if it has all of them."""
    if mask.true_count == len(mask):
        return files.select(columns)
    if isinstance(files, EncodedFiles):
        return files.some(mask, columns)
    return files.select(columns).filter(mask)


class StoredFiles(EncodedFiles):
    """A table of files as parquet; safe between threads.

    What it has decoded stays decoded as long as the object lives.
    """

    def __init__(self, data: bytes, what: str = "A table of files") -> None:
        """Read the footer of a parquet file; `what` names it in messages."""
        self._data, self._what = data, what
        # Not read_table: that imports Arrow's datasets and with them pandas, half a second.
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            self._footer = file.metadata
            self._stored = file.schema_arrow.remove_metadata()
            self.metadata: dict[bytes, bytes] = file.schema_arrow.metadata or {}
        self._schema = self._stored
        self._names = self._schema.names  # a schema makes a new list each time
        self._together: list[str] = []
        self._columns: dict[str, pa.ChunkedArray] = {}
        self._lock = threading.Lock()

    def complete(self, leading: Sequence[pa.Field], seldom: tuple[str, ...]) -> None:
        """Add leading columns that the file may lack, before anything is decoded.

        Columns that begin with `seldom` are decoded one by one. Raises a `ValueError` if a leading
        column has another type.
        """
        self._schema = _completed(self._stored, leading)
        self._names = self._schema.names
        if self.num_rows <= _FEW_FILES:
            self._together = [name for name in self._schema.names if not name.startswith(seldom)]

    @property
    def num_rows(self) -> int:
        """Number of files."""
        return int(self._footer.num_rows)

    @property
    def schema(self) -> pa.Schema:
        """Types of the columns, in order."""
        return self._schema

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self._names)

    def select(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all files, in their order."""
        with self._lock:
            new = [name for name in columns if name not in self._columns]
            if new:
                more = (name for name in self._together if name not in self._columns)
                new = list(dict.fromkeys([*new, *more]))
                groups = range(self._footer.num_row_groups)
                table = self._read(self._data, new, groups)
                self._columns.update({name: table[name] for name in new})
            if len(self._columns) == len(self._schema):
                self._data = b""
            schema = pa.schema([self._schema.field(name) for name in columns])
            if not columns:  # a table without columns still has its number of rows
                return pa.table({"": pa.nulls(self.num_rows)}).select([])
            return pa.Table.from_arrays([self._columns[n] for n in columns], schema=schema)

    def some(self, mask: pa.BooleanArray, columns: Sequence[str]) -> pa.Table:
        """Decode some columns, at least one, of the files in the mask, and nothing else."""
        data = self._data  # another thread may drop it when it has decoded all
        if not data or self._footer.num_row_groups == 1:
            return self.select(columns).filter(mask)
        # Keep the requested rows, not all that had to be decoded.
        parts = [self._read(data, columns, [])]
        start = 0
        for group in range(self._footer.num_row_groups):
            count = self._footer.row_group(group).num_rows
            part = mask.slice(start, count)
            if part.true_count:
                parts.append(self._read(data, columns, [group]).filter(part))
            start += count
        return pa.concat_tables(parts).combine_chunks()

    def _read(self, data: bytes, columns: Sequence[str], groups: Sequence[int]) -> pa.Table:
        """Decode columns of some row groups."""
        count = sum(self._footer.row_group(group).num_rows for group in groups)
        there = set(self._stored.names)
        stored = [name for name in columns if name in there]
        threads = count * len(stored) > _VALUES_OF_A_THREAD
        source = pa.BufferReader(arrow_memory(data) if threads else data)
        texts = [name for name in stored if _is_text(self._schema.field(name).type)]
        try:
            with pq.ParquetFile(source, metadata=self._footer, read_dictionary=texts) as file:
                # A name with a dot may bring other columns, and no names give no rows.
                table = file.read_row_groups(list(groups), stored, use_threads=threads)
            room = _FREE_BYTES + _LARGEST_RATIO * len(data)
            decoded = {name: _decoded(table[name], room) for name in texts}
        except DAMAGE as error:
            raise FormatError(f"{self._what} is damaged: {error}") from error
        fields = [self._schema.field(name) for name in columns]
        arrays = [
            decoded.get(field.name, table[field.name])
            if field.name in there
            else pa.nulls(count, field.type)
            for field in fields
        ]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _is_text(t: pa.DataType) -> bool:
    return bool(pat.is_string(t) or pat.is_binary(t))


def _decoded(column: pa.ChunkedArray, room: int) -> pa.ChunkedArray:
    """Decode a dictionary; raises a ValueError if that gives more bytes than there is room for.

    A file of a few kilobytes may repeat one long text any number of times.
    """
    if sum(len(part) * part.dictionary.nbytes for part in column.chunks) <= room:
        return column.cast(column.type.value_type)
    lengths = [pc.binary_length(part.dictionary).take(part.indices) for part in column.chunks]
    if sum(pc.sum(part).as_py() or 0 for part in lengths) > room:
        raise ValueError(f"one of its columns has more than {room:,} bytes")
    return column.cast(column.type.value_type)


def arrow_memory(data: bytes) -> pa.Buffer:
    """Copy data into Arrow's own memory, for reads in several threads.

    An Arrow thread may release what it has read long after the read is over. Python's memory needs
    the interpreter for that, and a process that is just ending is aborted.
    """
    buffer = pa.allocate_buffer(len(data))
    np.frombuffer(buffer, np.uint8)[:] = np.frombuffer(data, np.uint8)
    return buffer


def _completed(stored: pa.Schema, missing: Sequence[pa.Field]) -> pa.Schema:
    """The schema with the columns that an older version lacked."""
    for position, field in enumerate(missing):
        if field.name not in stored.names:
            stored = stored.insert(position, field)
        elif stored.field(field.name).type != field.type:
            raise ValueError(f"its column {field.name} has type {stored.field(field.name).type}")
    return stored
