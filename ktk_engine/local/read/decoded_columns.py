"""Decoded columns of files, reused for other files that hold the same bytes.

Each dataset of a cube repeats the cells, and a writer writes equal values as equal bytes. For our
own files a digest says that cells are equal (docs/design/reading.md). For files of other writers
the bytes are compared, which takes a fraction of the time that decoding takes.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from ktk_engine.files.data_file import chunk_ranges
from ktk_engine.format.file_digest import named_damage
from ktk_engine.local.join_run import JoinRun
from ktk_engine.local.task import TaskFile

_Layout: TypeAlias = tuple[Hashable, ...]


@dataclass(frozen=True)
class _Column:
    """A decoded column of some row groups of a file."""

    file: TaskFile
    groups: tuple[int, ...]
    values: pa.ChunkedArray


class DecodedColumns:
    """The decoded columns of one task that several datasets have; safe between threads.

    On a remote store nothing is kept, since bytes are fetched only once.
    """

    def __init__(self, run: JoinRun, names: Collection[str] = ()) -> None:
        self._run = run
        self._names = frozenset(() if run.store.is_remote else names)
        self._found: dict[_Layout, _Column] = {}

    def cached(
        self, file: TaskFile, groups: tuple[int, ...], names: Sequence[str]
    ) -> dict[str, pa.ChunkedArray]:
        """Give those columns of a file that another file, decoded before, holds byte for byte."""
        found = {}
        for name in self._shared(file, names):
            other = self._found.get(self._layout(file, groups, name))
            if other is not None and self._bytes(file, groups, name) == self._bytes(
                other.file, other.groups, name
            ):
                found[name] = other.values
        return found

    def keep(self, file: TaskFile, groups: tuple[int, ...], table: pa.Table) -> None:
        """Remember decoded columns; see `cached`."""
        for name in self._shared(file, table.column_names):
            layout = self._layout(file, groups, name)
            self._found.setdefault(layout, _Column(file, groups, table[name]))

    def _shared(self, file: TaskFile, names: Sequence[str]) -> list[str]:
        """The columns of a file that others may hold too, if each is a single column in parquet."""
        metadata, _ = self._run.footer(file)
        found = self._names.intersection(names)
        return [name for name in found if len(_positions(metadata, name)) == 1]

    def _layout(self, file: TaskFile, groups: Sequence[int], name: str) -> _Layout:
        """Everything that decoding depends on besides the bytes."""
        metadata, physical = self._run.footer(file)
        (number,) = _positions(metadata, name)
        chunks = (metadata.row_group(group).column(number) for group in groups)
        sizes = (
            (c.num_values, c.total_compressed_size, c.total_uncompressed_size, c.compression)
            for c in chunks
        )
        return (name, physical.field(name).type, str(metadata.schema.column(number)), *sizes)

    def _bytes(self, file: TaskFile, groups: Sequence[int], name: str) -> list[bytes]:
        metadata, _ = self._run.footer(file)
        store = self._run.store
        with named_damage(store, file.key):
            ranges = chunk_ranges(metadata, [name], groups)
            return [store.get_range(file.key, start, length) for start, length in ranges]


def _positions(metadata: pq.FileMetaData, name: str) -> list[int]:
    """Numbers of the columns with a path: none for a nested column, two for ambiguous names."""
    columns = range(metadata.num_columns)
    return [number for number in columns if metadata.schema.column(number).path == name]
