"""The table of files of a stored snapshot, of which is decoded what somebody needs.

A million files are 300 MB as a table, and 75 MB as they are stored. A plan of a few of them, or a
commit beside them, needs some columns or some rows.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

# With fewer, waking Arrow's threads takes longer than decoding, the more so on a busy machine.
_VALUES_OF_A_THREAD = 50_000


class FileTable(Protocol):
    """What a table of files can do, decoded (a table of Arrow's) or not."""

    @property
    def num_rows(self) -> int:
        """Number of files."""

    @property
    def schema(self) -> pa.Schema:
        """Types of the columns, in order."""

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order."""

    def select(self, columns: Sequence[str]) -> pa.Table:
        """Give some columns of all files."""


class EncodedFiles(ABC):
    """A table of files that decodes what is asked for."""

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
        """Give some columns of all files, in their order."""

    @abstractmethod
    def some(self, mask: pa.BooleanArray, columns: Sequence[str]) -> pa.Table:
        """Give some columns of some files, and decode no others.

        Args:
            mask: which files, one value per file.
            columns: names of columns, at least one.
        """


def some_files(files: FileTable, mask: pa.BooleanArray, columns: Sequence[str]) -> pa.Table:
    """Give some columns of some files; of all of them without a copy.

    Args:
        files: a table of files, decoded or not.
        mask: which files, one value per file.
        columns: names of its columns, at least one.
    """
    if mask.true_count == len(mask):
        return files.select(columns)
    if isinstance(files, EncodedFiles):
        return files.some(mask, columns)
    return files.select(columns).filter(mask)


class StoredFiles(EncodedFiles):
    """A table of files as parquet; safe between threads.

    What was decoded of it stays decoded, as long as this object lives.

    Attributes:
        metadata: of the parquet file's schema.
    """

    def __init__(self, data: bytes, missing: Sequence[pa.Field] = ()) -> None:
        """Read nothing but the footer.

        Args:
            data: a parquet file.
            missing: columns that it may lack, in order: first ones of the table, null where the
                file has none.

        Raises:
            ValueError: such a column has another type.
        """
        self._data = data
        # Not read_table: that imports Arrow's datasets and with them pandas, half a second.
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            self._footer = file.metadata
            self._stored = file.schema_arrow.remove_metadata()
            self.metadata: dict[bytes, bytes] = file.schema_arrow.metadata or {}
        self._schema = _completed(self._stored, missing)
        self._columns: dict[str, pa.ChunkedArray] = {}
        self._lock = threading.Lock()

    @property
    def num_rows(self) -> int:
        """Number of files."""
        return int(self._footer.num_rows)

    @property
    def schema(self) -> pa.Schema:
        """Types of the columns, in order."""
        return self._schema

    def select(self, columns: Sequence[str]) -> pa.Table:
        """Give some columns of all files, in their order."""
        with self._lock:
            new = [name for name in columns if name not in self._columns]
            if new:
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
        """Give some columns of some files, and decode no others.

        Args:
            mask: which files, one value per file.
            columns: names of columns, at least one.
        """
        data = self._data  # which another thread may drop when it has decoded all
        if not data or self._footer.num_row_groups == 1:
            return self.select(columns).filter(mask)
        # Kept are the rows that were asked for, not all that had to be decoded.
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
        with pq.ParquetFile(source, metadata=self._footer) as file:
            # A name with a dot may bring others along, and no names no rows.
            table = file.read_row_groups(list(groups), stored, use_threads=threads)
        fields = [self._schema.field(name) for name in columns]
        arrays = [
            table[field.name] if field.name in there else pa.nulls(count, field.type)
            for field in fields
        ]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def arrow_memory(data: bytes) -> pa.Buffer:
    """Give a copy of data in Arrow's own memory, for reads in several threads.

    A thread of Arrow may let go of what it has read when the read is long over. Python's memory
    needs the interpreter for that, and a process that ends just then is aborted.
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
