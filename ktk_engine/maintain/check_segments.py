"""Checks a secondary index in segments: their files, and whether they name all data files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.errors import KtkError, ObjectNotFoundError, StoreError
from ktk_engine.files.build_index import pairs_of_files
from ktk_engine.files.index_segment_file import FILE, read_segment, read_segment_footer
from ktk_engine.format.file_digest import DAMAGE, verify_whole
from ktk_engine.format.index_file import VALUE
from ktk_engine.formatting import counted
from ktk_engine.maintain.problem import DatasetCheck, Problem
from ktk_engine.snapshot.index_segment import IndexSegment
from ktk_engine.snapshot.snapshot import NULLS_PREFIX

_GROUPS_AT_ONCE = 50


def unreadable(error: Exception) -> str:
    """Why a file cannot be used: only what was read can be damaged."""
    what = "cannot be read" if isinstance(error, StoreError) else "is damaged"
    return f"the file {what}: {error}"


class SegmentCheck(DatasetCheck):
    """Checks the segments of indexes."""

    def index(self, column: str) -> Iterator[Problem]:
        """Check the index on a column."""
        if column not in self.snapshot.schema.names:
            yield self.problem("", "no index", "", "the schema lacks the column", column)
            return
        numbers = self.snapshot.file_column("position").to_numpy()
        pairs = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
        damaged = False
        for segment in self.snapshot.index_segments[column]:
            try:
                self._count(segment, pairs)
            except ObjectNotFoundError:
                damaged = True
                yield self.problem(segment.key, "a segment", "none", "the file is missing", column)
            except (KtkError, *DAMAGE) as error:
                damaged, reason = True, unreadable(error)
                yield self.problem(segment.key, "a segment", "", reason, column)
        if not damaged:
            yield from self._unnamed(column, pairs[numbers])

    def _count(self, segment: IndexSegment, pairs: np.ndarray) -> None:
        """Read a segment, and count the pairs of each file.

        Raises a `ValueError` if it is not sorted, or another error of `DAMAGE`.
        """
        verify_whole(self.store, segment.key, segment.digest)
        footer = read_segment_footer(self.store, segment)
        last = pa.nulls(0, footer.schema.field(VALUE).type)
        for start in range(0, len(footer.groups.rows), _GROUPS_AT_ONCE):
            groups = range(start, min(start + _GROUPS_AT_ONCE, len(footer.groups.rows)))
            found = read_segment(self.store, segment, footer, groups)
            values = pa.concat_arrays([last, *found[VALUE].chunks])
            if pc.any(pc.greater(values[:-1], values[1:])).as_py():
                raise ValueError("its values are not sorted")
            last = values[len(values) - 1 :]
            numbers = found[FILE].to_numpy() + segment.first
            numbers = numbers[numbers < len(pairs)]
            pairs += np.bincount(numbers, minlength=len(pairs))

    def _unnamed(self, column: str, pairs: np.ndarray) -> Iterator[Problem]:
        """Report files with values that the index does not list."""
        try:
            wanted = self._values(column)
        except KtkError as error:
            reason = f"the index cannot be compared with the rows: {error}"
            yield self.problem("", "values of the rows", "", reason, column)
            return
        short = np.flatnonzero(pairs < wanted)
        if len(short):
            label = self.snapshot.file_column("label")[int(short[0])].as_py()
            files = counted(len(short), "file")
            reason = f"the index does not list all values of {files}, so queries miss rows: {label}"
            wanted_pairs, named = int(wanted.sum()), int(pairs.sum())
            yield self.problem(
                "", counted(wanted_pairs, "pair"), counted(named, "pair"), reason, column
            )

    def _values(self, column: str) -> np.ndarray:
        """Lower bounds of the numbers of values of the files."""
        files = self.snapshot.files
        if self.deep:
            field = self.snapshot.schema.field(column)
            read = pairs_of_files(self.store, None, files, field)
            return np.array([len(values) for values, _, _ in read], np.int64)
        name = NULLS_PREFIX + column
        if name not in files.column_names:
            return np.zeros(files.num_rows, np.int64)
        rows = pc.subtract(files["rows"], files[name])
        held: np.ndarray = pc.fill_null(pc.greater(rows, 0), False).to_numpy()
        return held.astype(np.int64)
