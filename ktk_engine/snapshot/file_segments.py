"""The table of files of a large dataset, in segments that are read as far as somebody needs them.

See docs/design/scale.md, Snapshots in segments.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from ktk_engine.conditions.condition import Condition, IsIn, conjunction
from ktk_engine.conditions.may_match import may_match
from ktk_engine.errors import FormatError, ObjectNotFoundError
from ktk_engine.format.file_digest import DAMAGE
from ktk_engine.snapshot.stored_files import EncodedFiles, FileTable, StoredFiles, some_files
from ktk_engine.store.interface import ObjectStore

_MOST_WHOLE = 1024  # files of a dataset; what has more is stored in segments
_SEGMENT = 16_384  # files of one, about a megabyte
_TIER = 8  # segments of about one size are merged if there are more, and tiers differ by it
_MERGED = 2048  # files of a segment; what has more is left to `ktk compact`
_DEAD = 4  # a segment of which more than this part is gone is written anew
_REWRITTEN = 8  # segments of one commit for that reason
_POSITION, _LABEL = "position", "label"
_PARTITION, _LOW, _HIGH, _UNKNOWN = "partition.", "low.", "high.", "unknown."
_GONE = pa.field("gone", pa.list_(pa.int32()))
_LISTED = (
    pa.field("key", pa.string()),
    pa.field("sha256", pa.string()),
    pa.field("first", pa.int64()),  # the smallest number of a file
    pa.field("files", pa.int64()),  # that it has, those that are gone among them
    _GONE,  # row numbers, ascending
    pa.field("rows", pa.int64()),  # of the files that are left; null: unknown
    pa.field("bytes", pa.int64()),
)


@dataclass(frozen=True)
class SegmentReader:
    """Reads segments, each once.

    Attributes:
        store: where they lie.
        known: what was read or written, by key; segments never change.
    """

    store: ObjectStore
    known: MutableMapping[str, FileTable] = field(default_factory=dict)

    def read(self, key: str, sha256: str, files: int) -> FileTable:
        """Give a segment's rows, verified.

        Raises:
            ObjectNotFoundError: it is missing.
            FormatError: it is damaged.
        """
        if (found := self.known.get(key)) is not None:
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
        return self.known.setdefault(key, stored)


_RESTORE = "Restore the file from a backup of the store, or rebuild the dataset."


class SegmentedFiles(EncodedFiles):
    """A table of files in segments; safe between threads.

    Attributes:
        listed: one row a segment: what a root says of it.
        added: files that no segment has yet.
        reader: reads segments.
    """

    def __init__(
        self,
        listed: pa.Table,
        schema: pa.Schema,
        reader: SegmentReader,
        added: pa.Table | None = None,
    ) -> None:
        """Read nothing.

        Args:
            listed: one row a segment.
            schema: columns of the table; a segment may lack some, whose values are then unknown,
                and have others, which do not count.
            reader: reads segments.
            added: files that no segment has yet, with these columns.
        """
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
        """The sum of `rows` or `bytes`, None where a file's is unknown; reads no segment."""
        parts = [self.listed[column], self.added[column]]
        if any(part.null_count for part in parts):
            return None
        return sum(int(pc.sum(part).as_py() or 0) for part in parts)

    def verify(self) -> None:
        """Read all segments.

        Raises:
            ObjectNotFoundError: one is missing.
            FormatError: one is damaged.
        """
        for number in range(self.listed.num_rows):
            self._segment(number)

    def select(self, columns: Sequence[str]) -> pa.Table:
        """Give some columns of all files, in their order."""
        if not columns:  # a table without columns still has its number of rows
            return pa.table({"": pa.nulls(self.num_rows)}).select([])
        with self._lock:
            new = [name for name in columns if name not in self._columns]
            if new:
                parts = [self._living(n, new) for n in range(self.listed.num_rows)]
                table = self._together([*parts, self.added.select(new)], new)
                places = self._places()
                if places is not None:
                    table = table.take(pa.array(places))
                self._columns.update({name: table[name] for name in new})
            schema = pa.schema([self._schema.field(name) for name in columns])
            return pa.Table.from_arrays([self._columns[n] for n in columns], schema=schema)

    def some(self, mask: pa.BooleanArray, columns: Sequence[str]) -> pa.Table:
        """Give some columns of some files, and decode no others.

        Args:
            mask: which files, one value per file.
            columns: names of columns, at least one.
        """
        places = self._places()
        wanted = mask.to_numpy(zero_copy_only=False)
        if places is not None:
            chosen, wanted = wanted, np.zeros(self.num_rows, bool)
            wanted[places] = chosen
        parts, start = [], 0
        for number in range(self.listed.num_rows):
            living = self._left(number)
            part = wanted[start : start + len(living)]
            start += len(living)
            if part.any():
                stored = self._segment(number)
                chosen = np.zeros(stored.num_rows, bool)
                chosen[living[part]] = True
                known = [name for name in columns if name in stored.schema.names]
                found = some_files(stored, pa.array(chosen), known or [_POSITION])
                parts.append(found)
        parts.append(self.added.select(columns).filter(pa.array(wanted[start:])))
        table = self._together(parts, columns)
        if places is None:
            return table
        # Where each chosen row stands among the chosen ones, in the order of all.
        rank = np.cumsum(wanted) - 1
        return table.take(pa.array(rank[places[wanted[places]]]))

    def narrowed(self, conditions: Sequence[Condition]) -> SegmentedFiles:
        """Leave segments out in which no file can fulfil conditions on partition columns.

        Args:
            conditions: conjuncts, each on partition columns alone.
        """
        count = self.listed.num_rows
        if not conditions or not count:
            return self
        lows, highs = self._bounds(_LOW), self._bounds(_HIGH)
        nulls = lows.select([])
        for name in lows.column_names:
            nulls = nulls.append_column(name, pa.array(np.zeros(count, np.int64)))
        counts = self.listed["files"].combine_chunks()
        may = may_match(conjunction(conditions), lows, highs, nulls, counts)
        for name in frozenset[str]().union(*(item.columns for item in conditions)):
            may = pc.or_(may, pc.greater(self.listed[_UNKNOWN + name], 0).combine_chunks())
        return self._of(may)

    def narrowed_to(self, files: pa.Table) -> SegmentedFiles:
        """Leave segments out in which no file can lie in the partition of a given one.

        Args:
            files: rows with the columns `partition.<column>`.
        """
        return self.narrowed(partitions_of(files))

    def changed(self, gone: pa.Table, added: pa.Table, schema: pa.Schema) -> SegmentedFiles:
        """Give the table without some files and with others; reads where those may lie.

        Args:
            gone: rows of files that go: `position` and `partition.<column>`.
            added: rows of files that come, numbered.
            schema: columns of the result: those of this one and more.
        """
        listed, kept = self.listed, self.added
        if gone.num_rows:
            numbers = gone[_POSITION].combine_chunks()
            kept = kept.filter(pc.invert(pc.is_in(kept[_POSITION], value_set=numbers)))
            keys = pa.array(self.narrowed_to(gone).keys, pa.string())
            touched = pc.is_in(listed["key"], value_set=keys)
            rows = [self._without(number, numbers) for number in np.flatnonzero(touched).tolist()]
            listed = pa.concat_tables([listed.filter(pc.invert(touched)), *rows])
        both = self._together([kept, added], schema.names, schema)
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

    def _living(self, number: int, columns: Sequence[str]) -> pa.Table:
        """Some columns of a segment's files that are not gone."""
        stored = self._segment(number)
        known = [name for name in columns if name in stored.schema.names]
        found = stored.select(known or [_POSITION])
        gone = self._gone(number)
        return found.take(pa.array(self._left(number))) if len(gone) else found

    def _without(self, number: int, numbers: pa.Array) -> pa.Table:
        """What is listed of a segment once some more of its files are gone; nothing if all are."""
        stored = self._segment(number)
        found = pc.is_in(stored.select([_POSITION])[_POSITION], value_set=numbers)
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
            "gone": pa.array([gone], _GONE.type),
            "rows": pa.array([_total(sums["rows"])], pa.int64()),
            "bytes": pa.array([_total(sums["bytes"])], pa.int64()),
        }
        for name, values in changed.items():
            row = row.set_column(row.schema.get_field_index(name), row.schema.field(name), values)
        return row

    def _together(
        self, parts: Sequence[pa.Table], columns: Sequence[str], schema: pa.Schema | None = None
    ) -> pa.Table:
        """Put rows after one another; what a part lacks is unknown."""
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
        """Where the files stand, in order of their numbers, if segments follow one another.

        None if they do so in that order.
        """
        with self._lock:
            if not self._is_known:
                parts = [self._living(n, [_POSITION]) for n in range(self.listed.num_rows)]
                parts.append(self.added.select([_POSITION]))
                numbers = np.concatenate([part[_POSITION].to_numpy() for part in parts])
                ascending = bool((numbers[1:] > numbers[:-1]).all())
                self._order = None if ascending else np.argsort(numbers, kind="stable")
                self._is_known = True
            return self._order


def partitions_of(files: pa.Table) -> list[Condition]:
    """Give conditions that files of the same partitions fulfil, where values are known.

    Args:
        files: rows with the columns `partition.<column>`.
    """
    found: list[Condition] = []
    for name in files.column_names:
        if name.startswith(_PARTITION):
            values = pc.unique(files[name])
            if not values.null_count and not pat.is_floating(values.type):
                found.append(IsIn(name.removeprefix(_PARTITION), values))
    return found


def is_segmented(files: FileTable) -> bool:
    """Whether a table of files is stored in segments: of many files."""
    return files.num_rows > _MOST_WHOLE


def is_scattered(files: FileTable) -> bool:
    """Whether a table of files has many more segments than it needs, or ought to have some."""
    if not isinstance(files, SegmentedFiles):
        return is_segmented(files)
    return len(files.keys) > 2 * -(-files.num_rows // _SEGMENT)


def store_segments(
    store: ObjectStore,
    files: FileTable,
    partitions: Sequence[str],
    key: Callable[[int], str],
    *,
    merge: bool = True,
) -> tuple[SegmentedFiles, list[str]]:
    """Store what no segment has yet, and merge segments where many are of one size.

    Args:
        store: where.
        files: a table of files.
        partitions: the partition columns, in order.
        key: gives the key of the segment with a number.
        merge: whether full tiers are merged.

    Returns:
        The table, of which each file is in a segment, and the keys that were written.

    Raises:
        ObjectExistsError: a key is taken.
    """
    if not isinstance(files, SegmentedFiles):
        everything = files.select(files.column_names)
        nothing = _no_segments(files.schema, partitions)
        files = SegmentedFiles(nothing, files.schema, SegmentReader(store), everything)
    merged = _due(files, merge)
    numbers = [n for n in range(files.listed.num_rows) if n not in merged]
    names = files.column_names
    parts = [files._living(n, names) for n in sorted(merged)]
    rows = files._together([*parts, files.added], names)
    listed, written = [files.listed.take(pa.array(numbers, pa.int64()))], []
    if rows.num_rows:
        keys = [(_PARTITION + name, "ascending") for name in partitions]
        rows = rows.sort_by([*keys, (_POSITION, "ascending")])
        count = -(-rows.num_rows // _SEGMENT)
        for number in range(count):
            start = rows.num_rows * number // count
            part = rows.slice(start, rows.num_rows * (number + 1) // count - start)
            part = part.combine_chunks()
            written.append(key(number))
            listed.append(_put(files.reader, store, written[-1], part, partitions))
    table = pa.concat_tables(listed).sort_by("first")
    known = {key: v for key, v in files.reader.known.items() if key in {*table["key"].to_pylist()}}
    return SegmentedFiles(table, files.schema, SegmentReader(store, known)), written


def _due(files: SegmentedFiles, merge: bool) -> set[int]:
    """Which segments are written anew with the added files: of full tiers, and with many gone."""
    stored = files.listed["files"].to_numpy()
    gone = pc.list_value_length(files.listed["gone"]).to_numpy()
    left = (stored - gone).tolist()
    share = gone / np.maximum(stored, 1)
    due = set(np.flatnonzero(share > 1 / _DEAD)[np.argsort(-share[share > 1 / _DEAD])][:_REWRITTEN])
    if not merge:
        return due
    while True:
        new = sum(left[n] for n in due) + files.added.num_rows
        tiers: dict[int, list[int]] = {}
        for n, count in enumerate(left):
            if n not in due and count <= _MERGED:
                tiers.setdefault(_tier(count), []).append(n)
        # What is written now is one more of its tier.
        full = [
            members
            for tier, members in sorted(tiers.items())
            if len(members) + (new > 0 and tier == _tier(new)) > _TIER
        ]
        if not full:
            return due
        due.update(full[0])


def _tier(files: int) -> int:
    tier = 0
    while files >= _TIER:
        files //= _TIER
        tier += 1
    return tier


def _no_segments(schema: pa.Schema, partitions: Sequence[str]) -> pa.Table:
    fields = list(_LISTED)
    for name in partitions:
        t = schema.field(_PARTITION + name).type
        fields += [pa.field(_LOW + name, t), pa.field(_HIGH + name, t)]
        fields.append(pa.field(_UNKNOWN + name, pa.int64()))
    return pa.schema(fields).empty_table()


def _put(
    reader: SegmentReader, store: ObjectStore, key: str, rows: pa.Table, partitions: Sequence[str]
) -> pa.Table:
    """Store a segment; gives what a root says of it."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    data = sink.getvalue().to_pybytes()
    store.put_if_absent(key, data)
    reader.known[key] = rows
    schema = _no_segments(rows.schema, partitions).schema
    said: dict[str, Any] = {
        "key": key,
        "sha256": hashlib.sha256(data).hexdigest(),
        "first": pc.min(rows[_POSITION]),
        "files": rows.num_rows,
        "rows": _total(rows["rows"]),
        "bytes": _total(rows["bytes"]),
        "gone": [],
    }
    for name in partitions:
        values = rows[_PARTITION + name]
        said[_LOW + name], said[_HIGH + name] = _low_and_high(values)
        said[_UNKNOWN + name] = values.null_count
    arrays = [_single(said[item.name], item.type) for item in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _single(value: Any, t: pa.DataType) -> pa.Array:
    return pa.repeat(value, 1) if isinstance(value, pa.Scalar) else pa.array([value], t)


def _low_and_high(values: pa.ChunkedArray) -> tuple[pa.Scalar, pa.Scalar]:
    """Bounds of partition values; unknown with NaN."""
    if pat.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        return pa.scalar(None, values.type), pa.scalar(None, values.type)
    found = pc.min_max(values)
    return found["min"], found["max"]


def _total(column: pa.ChunkedArray) -> int | None:
    return None if column.null_count else int(pc.sum(column).as_py() or 0)


def _marked(listed: pa.Table) -> list[tuple[str, tuple[int, ...]]]:
    """Segments and which of their files are gone."""
    columns = (listed["key"].to_pylist(), listed["gone"].to_pylist())
    return [(key, tuple(gone)) for key, gone in zip(*columns, strict=True)]
