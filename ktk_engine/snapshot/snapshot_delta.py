"""Snapshots that say only what changed since an earlier one, their base.

See docs/design/files-and-commits.md, Snapshots.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.snapshot.stored_files import EncodedFiles, FileTable, some_files

LEAST_FILES = 10_000  # of a base; what has fewer is written whole
_MOST = 8  # a delta says at most this part of what its base does
_POSITION, _LABEL = "position", "label"


@dataclass(frozen=True)
class SnapshotBase:
    """A whole snapshot that others build on.

    Attributes:
        key: its key.
        sha256: its digest.
        files: its table of files.
    """

    key: str
    sha256: str
    files: FileTable


@dataclass(frozen=True)
class Delta:
    """What makes the files of a snapshot out of those of its base.

    Attributes:
        removed: row numbers of the base's files that are gone, ascending.
        added: the files that follow those that stayed; rows of `Snapshot.files`.
    """

    removed: np.ndarray
    added: FileTable


def find_delta(base: FileTable, files: pa.Table) -> Delta | None:
    """Compare tables of files; None where a delta could not say it, or not briefly.

    Args:
        base: the table of a whole snapshot.
        files: that of a later one.
    """
    count = base.num_rows
    if count < LEAST_FILES or abs(files.num_rows - count) * _MOST > count:
        return None
    shared = {field.name: field.type for field in base.schema}
    if any(shared.get(field.name, field.type) != field.type for field in files.schema):
        return None
    old, labels = base.select([_LABEL])[_LABEL], files[_LABEL]
    removed = np.zeros(0, np.int64)
    if not labels.slice(0, count).equals(old):
        gone = pc.invert(pc.is_in(old, value_set=labels)).combine_chunks()
        removed = np.flatnonzero(gone)
    stayed = count - len(removed)
    delta = Delta(removed, files.slice(stayed))
    if (len(removed) + delta.added.num_rows) * _MOST > count:
        return None
    # Whatever else changed of the files that stayed, a delta cannot say.
    built = ExtendedFiles(SnapshotBase("", "", base), delta)
    return delta if built.select(built.column_names).equals(files) else None


class ExtendedFiles(EncodedFiles):
    """The table of files of a delta and its base; safe between threads.

    Attributes:
        base: the snapshot that it builds on.
    """

    def __init__(self, base: SnapshotBase, delta: Delta) -> None:
        """Decode nothing.

        Args:
            base: the snapshot that it builds on.
            delta: what changed.

        Raises:
            ValueError: the base does not have files that are said to be removed.
        """
        count = base.files.num_rows
        self.base = base
        self._added = delta.added
        self._stayed = np.delete(np.arange(count), delta.removed)
        if len(self._stayed) != count - len(delta.removed):
            raise ValueError("files are removed twice")
        self._columns: dict[str, pa.ChunkedArray] = {}
        self._lock = threading.Lock()

    @property
    def num_rows(self) -> int:
        """Number of files."""
        return len(self._stayed) + self._added.num_rows

    @property
    def schema(self) -> pa.Schema:
        """Types of the columns, in order."""
        return self._added.schema

    def select(self, columns: Sequence[str]) -> pa.Table:
        """Give some columns of all files, in their order."""
        with self._lock:
            new = [name for name in columns if name not in self._columns]
            there = set(self.base.files.column_names)
            known = [name for name in new if name in there]
            old = self.base.files.select(known)
            if len(self._stayed) < old.num_rows:
                old = old.take(pa.array(self._stayed))
            added, positions = self._added.select(new), np.arange(self.num_rows)
            table = self._together(new, old, added, positions)
            self._columns.update({name: table[name] for name in new})
            if not columns:  # a table without columns still has its number of rows
                return pa.table({"": pa.nulls(self.num_rows)}).select([])
            schema = self.schema
            fields = [schema.field(name) for name in columns]
            return pa.Table.from_arrays(
                [self._columns[name] for name in columns], schema=pa.schema(fields)
            )

    def some(self, mask: pa.BooleanArray, columns: Sequence[str]) -> pa.Table:
        """Give some columns of some files, and decode no others.

        Args:
            mask: which files, one value per file.
            columns: names of columns, at least one.
        """
        stayed = mask.slice(0, len(self._stayed)).to_numpy(zero_copy_only=False)
        of_base = np.zeros(self.base.files.num_rows, bool)
        of_base[self._stayed[stayed]] = True
        there = set(self.base.files.column_names)
        known = [name for name in columns if name in there]
        old = some_files(self.base.files, pa.array(of_base), known or [_POSITION])
        added = some_files(self._added, mask.slice(len(self._stayed)), columns)
        positions = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        return self._together(columns, old, added, positions)

    def _together(
        self, columns: Sequence[str], old: pa.Table, added: pa.Table, positions: np.ndarray
    ) -> pa.Table:
        """Put columns of files that stayed and of those that came after one another."""
        schema, there = self.schema, set(old.column_names)
        fields = [schema.field(name) for name in columns]
        arrays = []
        for field in fields:
            if field.name == _POSITION:
                parts = [pa.array(positions, field.type)]
            elif field.name in there:
                parts = [*old[field.name].chunks, *added[field.name].chunks]
            else:  # a column that came later
                came = added[field.name]
                parts = [pa.nulls(len(positions) - len(came), field.type), *came.chunks]
            arrays.append(pa.chunked_array(parts, field.type))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
