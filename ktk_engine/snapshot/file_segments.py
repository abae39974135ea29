"""The table of files of a large dataset, in segments that are read on demand.

See docs/design/scale.md, Snapshots in segments.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.conditions.condition import Condition, IsIn, conjunction
from ktk_engine.conditions.may_match import may_match
from ktk_engine.errors import FormatError, ObjectNotFoundError
from ktk_engine.format.file_digest import DAMAGE
from ktk_engine.snapshot.stored_files import EncodedFiles, FileTable, StoredFiles, some_files
from ktk_engine.store.ask_all import AT_ONCE, ask_all
from ktk_engine.store.interface import ObjectStore

POSITION = "position"
PARTITION_PREFIX, LOW, HIGH, UNKNOWN = "partition.", "low.", "high.", "unknown."
GONE = pa.field("gone", pa.list_(pa.int32()))
LISTED = (
    pa.field("key", pa.string()),
    pa.field("sha256", pa.string()),
    pa.field("first", pa.int64()),  # the smallest number of a file
    pa.field("files", pa.int64()),  # of the segment, with those that are gone
    GONE,  # row numbers, ascending
    pa.field("rows", pa.int64()),  # of the remaining files; null: unknown
    pa.field("bytes", pa.int64()),
)


@dataclass(frozen=True)
class SegmentReader:
    """Reads segments, each once."""

    store: ObjectStore
    # what was read or written, by key; segments never change
    tables: MutableMapping[str, FileTable] = field(default_factory=dict)

    def read(self, key: str, sha256: str, files: int) -> FileTable:
        """A segment's verified rows.

        Raises an `ObjectNotFoundError` if it is missing, and a `FormatError` if it is damaged.
        """
        if (found := self.tables.get(key)) is not None:
            return found
        try:
            data = self.store.get(key)
        except ObjectNotFoundError as error:
            raise ObjectNotFoundError(
                f"{key} of {self.store.url}, a part of a snapshot, is missing. {_RESTORE}"
            ) from error
        try:
            if hashlib.sha256(data).hexdigest() != sha256:
                raise ValueError("its content does not fit the digest in its snapshot")
            stored = StoredFiles(data)
            if stored.num_rows != files:
                raise ValueError(f"it has {stored.num_rows:,} files, its snapshot says {files:,}")
        except DAMAGE as error:
            raise FormatError(
                f"{key} of {self.store.url}, a part of a snapshot, is damaged: {error}. {_RESTORE}"
            ) from error
        return self.tables.setdefault(key, stored)


_RESTORE = "Restore the file from a backup of the store, or rebuild the dataset."


class SegmentedFiles(EncodedFiles):
    """A table of files in segments; safe between threads.

    `listed` has one row per segment, as the root lists it. `added` holds the files that no segment
    has yet. A segment may lack columns of the table, whose values are then unknown, and its other
    columns are ignored.
    """

    def __init__(
        self,
        listed: pa.Table,
        schema: pa.Schema,
        reader: SegmentReader,
        added: pa.Table | None = None,
    ) -> None:
        self.listed = listed
        self.reader = reader
        self.added = schema.empty_table() if added is None else added
        self._schema = schema
        self._columns: dict[str, pa.ChunkedArray] = {}
        self._order: np.ndarray | None = None
        self._is_known = False  # the order
        self._lock = threading.RLock()

    @property
    def num_rows(self) -> int:
        """Number of files."""
        gone = pc.sum(pc.list_value_length(self.listed["gone"])).as_py() or 0
        return int((pc.sum(self.listed["files"]).as_py() or 0) - gone + self.added.num_rows)

    @property
    def schema(self) -> pa.Schema:
        """Types of the columns, in order."""
        return self._schema

    @property
    def keys(self) -> list[str]:
        """Keys of the segments."""
        found: list[str] = self.listed["key"].to_pylist()
        return found

    def total(self, column: str) -> int | None:
        """The sum of `rows` or `bytes`, None if a file's is unknown; reads no segment."""
        parts = [self.listed[column], self.added[column]]
        if any(part.null_count for part in parts):
            return None
        return sum(int(pc.sum(part).as_py() or 0) for part in parts)

    def verify(self) -> None:
        """Read all segments and compare them with the list.

        Raises an `ObjectNotFoundError` if one is missing, and a `FormatError` if one is damaged, a
        file is in two, or the sums differ from those listed.
        """
        found = self.select([POSITION, "rows", "bytes"])
        if pc.count_distinct(found[POSITION]).as_py() < found.num_rows:
            raise FormatError(
                f"Segments of a snapshot in {self.reader.store.url} list a file twice, for "
                f"instance segments {self.keys[0]} and {self.keys[-1]}. {_RESTORE}"
            )
        for name in ("rows", "bytes"):
            if (listed := self.total(name)) != (counted := total_of(found[name])):
                raise FormatError(
                    f"A snapshot in {self.reader.store.url} lists {listed} {name}, its segments "
                    f"have {counted}: {', '.join(self.keys[:3])}. {_RESTORE}"
                )

    def select(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all files, in their order."""
        if not columns:  # a table without columns still has its number of rows
            return pa.table({"": pa.nulls(self.num_rows)}).select([])
        with self._lock:
            new = [name for name in columns if name not in self._columns]
            if new:
                parts = self._living_parts(range(self.listed.num_rows), new)
                table = self.together([*parts, self.added.select(new)], new)
                places = self._places()
                if places is not None:
                    table = table.take(pa.array(places))
                self._columns.update({name: table[name] for name in new})
            schema = pa.schema([self._schema.field(name) for name in columns])
            return pa.Table.from_arrays([self._columns[n] for n in columns], schema=schema)

    def some(self, mask: pa.BooleanArray, columns: Sequence[str]) -> pa.Table:
        """Decode some columns, at least one, of the files in the mask, and nothing else."""
        places = self._places()
        wanted = mask.to_numpy(zero_copy_only=False)
        if places is not None:
            chosen, wanted = wanted, np.zeros(self.num_rows, bool)
            wanted[places] = chosen
        chosen_rows, start = dict[int, np.ndarray](), 0
        for number in range(self.listed.num_rows):
            living = self._left(number)
            part = wanted[start : start + len(living)]
            start += len(living)
            if part.any():
                chosen_rows[number] = living[part]

        def read(number: int) -> pa.Table:
            stored = self._segment(number)
            chosen = np.zeros(stored.num_rows, bool)
            chosen[chosen_rows[number]] = True
            known = [name for name in columns if name in stored.schema.names]
            return some_files(stored, pa.array(chosen), known or [POSITION])

        parts = ask_all(self.reader.store, read, chosen_rows)
        parts.append(self.added.select(columns).filter(pa.array(wanted[start:])))
        table = self.together(parts, columns)
        if places is None:
            return table
        # Position of each chosen row among the chosen ones, in the order of all.
        rank = np.cumsum(wanted) - 1
        return table.take(pa.array(rank[places[wanted[places]]]))

    def parts(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns of all files, in no order; what is read for that is not kept."""
        tables = dict(self.reader.tables)  # copied at once: other threads may add to it
        reader = SegmentReader(self.reader.store, WeakValueDictionary(tables))
        files = SegmentedFiles(self.listed, self._schema, reader)
        count = self.listed.num_rows
        for start in range(0, count, AT_ONCE):
            yield from files._living_parts(range(start, min(start + AT_ONCE, count)), columns)
        yield self.added.select(columns)

    def narrowed(self, conditions: Sequence[Condition]) -> SegmentedFiles:
        """Leave out segments in which no file can fulfil these conditions on partition columns."""
        count = self.listed.num_rows
        if not conditions or not count:
            return self
        lows, highs = self._bounds(LOW), self._bounds(HIGH)
        nulls = lows.select([])
        for name in lows.column_names:
            nulls = nulls.append_column(name, pa.array(np.zeros(count, np.int64)))
        counts = self.listed["files"].combine_chunks()
        may = may_match(conjunction(conditions), lows, highs, nulls, counts)
        for name in frozenset[str]().union(*(item.columns for item in conditions)):
            may = pc.or_(may, pc.greater(self.listed[UNKNOWN + name], 0).combine_chunks())
        return self._of(may)

    def narrowed_to(self, files: pa.Table) -> SegmentedFiles:
        """Leave out segments in which no file can be in the partition of a given one."""
        return self.narrowed(partitions_of(files))

    def changed(self, gone: pa.Table, added: pa.Table, schema: pa.Schema) -> SegmentedFiles:
        """The table without `gone` and with the numbered files `added`; reads where `gone` may be.

        `gone` has the columns `position` and `partition.<column>`. `schema` has at least the
        columns of this table.
        """
        listed, kept = self.listed, self.added
        if gone.num_rows:
            numbers = gone[POSITION].combine_chunks()
            kept = kept.filter(pc.invert(pc.is_in(kept[POSITION], value_set=numbers)))
            keys = pa.array(self.narrowed_to(gone).keys, pa.string())
            touched = pc.is_in(listed["key"], value_set=keys)
            rows = [self._without(number, numbers) for number in np.flatnonzero(touched).tolist()]
            listed = pa.concat_tables([listed.filter(pc.invert(touched)), *rows])
        both = self.together([kept, added], schema.names, schema)
        return SegmentedFiles(listed, schema, self.reader, both)

    def apart_from(self, other: SegmentedFiles) -> SegmentedFiles:
        """Leave out the segments that another table lists with the same files gone."""
        known = set(_marked(other.listed))
        return self._of(pa.array([item not in known for item in _marked(self.listed)], pa.bool_()))

    def _of(self, kept: pa.BooleanArray) -> SegmentedFiles:
        if kept.true_count == len(kept):
            return self
        return SegmentedFiles(self.listed.filter(kept), self._schema, self.reader, self.added)

    def _bounds(self, prefix: str) -> pa.Table:
        names = [name for name in self.listed.column_names if name.startswith(prefix)]
        found = self.listed.select(names)
        return found.rename_columns([name.removeprefix(prefix) for name in names])

    def _segment(self, number: int) -> FileTable:
        row = self.listed.slice(number, 1).select(["key", "sha256", "files"]).to_pylist()[0]
        return self.reader.read(row["key"], row["sha256"], row["files"])

    def _gone(self, number: int) -> np.ndarray:
        gone: np.ndarray = self.listed["gone"][number].values.to_numpy()
        return gone

    def _left(self, number: int) -> np.ndarray:
        """Row numbers of a segment's files that are not gone."""
        return np.delete(np.arange(self.listed["files"][number].as_py()), self._gone(number))

    def _living_parts(self, numbers: Sequence[int], columns: Sequence[str]) -> list[pa.Table]:
        return ask_all(self.reader.store, lambda n: self.living_rows(n, columns), numbers)

    def living_rows(self, number: int, columns: Sequence[str]) -> pa.Table:
        """Some columns of a segment's files that are not gone."""
        stored = self._segment(number)
        known = [name for name in columns if name in stored.schema.names]
        found = stored.select(known or [POSITION])
        gone = self._gone(number)
        return found.take(pa.array(self._left(number))) if len(gone) else found

    def _without(self, number: int, numbers: pa.Array) -> pa.Table:
        """A segment's row in the list after some more of its files are gone; no row if all are."""
        stored = self._segment(number)
        found = pc.is_in(stored.select([POSITION])[POSITION], value_set=numbers)
        fresh = np.setdiff1d(np.flatnonzero(found), self._gone(number))
        if not len(fresh):
            return self.listed.slice(number, 1)
        gone = np.union1d(self._gone(number), fresh).astype(np.int32)
        if len(gone) == stored.num_rows:
            return self.listed.slice(0, 0)
        left = np.delete(np.arange(stored.num_rows), gone)
        sums = stored.select(["rows", "bytes"]).take(pa.array(left))
        row = self.listed.slice(number, 1)
        changed = {
            "gone": pa.array([gone], GONE.type),
            "rows": pa.array([total_of(sums["rows"])], pa.int64()),
            "bytes": pa.array([total_of(sums["bytes"])], pa.int64()),
        }
        for name, values in changed.items():
            row = row.set_column(row.schema.get_field_index(name), row.schema.field(name), values)
        return row

    def together(
        self, parts: Sequence[pa.Table], columns: Sequence[str], schema: pa.Schema | None = None
    ) -> pa.Table:
        """Concatenate rows; columns that a part lacks become unknown."""
        fields = [(schema or self._schema).field(name) for name in columns]
        arrays = []
        for item in fields:
            chunks: list[pa.Array] = []
            for part in parts:
                if item.name in part.column_names:
                    chunks += part[item.name].chunks
                else:
                    chunks.append(pa.nulls(part.num_rows, item.type))
            arrays.append(pa.chunked_array(chunks, item.type))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def _places(self) -> np.ndarray | None:
        """The order of the files by number; None if they are in that order already."""
        with self._lock:
            if not self._is_known:
                parts = self._living_parts(range(self.listed.num_rows), [POSITION])
                parts.append(self.added.select([POSITION]))
                numbers = np.concatenate([part[POSITION].to_numpy() for part in parts])
                ascending = bool((numbers[1:] > numbers[:-1]).all())
                self._order = None if ascending else np.argsort(numbers, kind="stable")
                self._is_known = True
            return self._order


def partitions_of(files: pa.Table) -> list[Condition]:
    """Conditions that hold for every file in the partitions of `files`, where values are known."""
    found: list[Condition] = []
    for name in files.column_names:
        if name.startswith(PARTITION_PREFIX):
            values = pc.unique(files[name])
            if not values.null_count and not pat.is_floating(values.type):
                found.append(IsIn(name.removeprefix(PARTITION_PREFIX), values))
    return found


def total_of(column: pa.ChunkedArray) -> int | None:
    """The sum; None if a value is unknown."""
    return None if column.null_count else int(pc.sum(column).as_py() or 0)


def _marked(listed: pa.Table) -> list[tuple[str, tuple[int, ...]]]:
    """The segments, with the numbers of their files that are gone."""
    columns = (listed["key"].to_pylist(), listed["gone"].to_pylist())
    return [(key, tuple(gone)) for key, gone in zip(*columns, strict=True)]
