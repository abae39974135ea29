"""Snapshots: the committed state of one dataset, one row per file.

See docs/design/files-and-commits.md, Snapshots.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition
from ktk_engine.cube.cube_metadata import DIMENSION_COLUMNS, IS_SEED, cube_value
from ktk_engine.errors import FormatError
from ktk_engine.format.comments import Comments, comments_of
from ktk_engine.format.dataset_key import TABLE, common_metadata_key
from ktk_engine.format.file_digest import FileDigest
from ktk_engine.format.label import unreadable_value
from ktk_engine.snapshot.file_segments import PARTITION_PREFIX as PARTITION_PREFIX
from ktk_engine.snapshot.file_segments import SegmentedFiles, partitions_of
from ktk_engine.snapshot.index_segment import IndexSegment
from ktk_engine.snapshot.stored_files import FileTable, some_files
from ktk_engine.store.read_cache import ReadCache

FILE_FIELDS = (
    pa.field("position", pa.int64()),
    pa.field("label", pa.string()),
    pa.field("key", pa.string()),
    pa.field("rows", pa.int64()),
    pa.field("bytes", pa.int64()),
    pa.field("physical", pa.int32()),
    pa.field("commit", pa.string()),
    # As `FileDigest` has them; files of other writers and of older versions have none.
    pa.field("tail", pa.int64()),
    pa.field("tail_digest", pa.binary()),
    pa.field("digest", pa.binary()),
    # Two files with the same one hold the same cells in the same order (`CellsDigest`).
    pa.field("cells", pa.binary()),
    # Whether this library wrote it. Versions that did not say so are asked by `is_own`.
    pa.field("own", pa.bool_()),
)
MINIMUM_PREFIX, MAXIMUM_PREFIX, NULLS_PREFIX = "min.", "max.", "nulls."
# Where the properties keep in which formats every commit is published.
PUBLISH = "publish"
# Where they say that no documents are written for Kartothek; in a cube the seed dataset says it.
WITHOUT_DOCUMENTS = "without_documents"
_OF_PUBLISHING = (PUBLISH, WITHOUT_DOCUMENTS)
# Where they say that an unknown partition value is null: of folders, which have a text for it.
NULL_FOLDERS = "null_folders"
# Where the properties keep which columns of other programs' files are left out, and why: nothing
# that would write their rows anew is committed.
LEFT_OUT = "left_out"
# Where they keep which columns of text, or of bytes, other programs have in Arrow's large layout:
# programs that append there compare schemas and indices with it.
LARGE = "large"
_LARGEST_DERIVED = 256 * 1024 * 1024


def _derived_arrays() -> ReadCache[Hashable, pa.Array]:
    return ReadCache(_LARGEST_DERIVED, lambda array: int(array.nbytes))


@dataclass(frozen=True)
class Snapshot:
    """One dataset as one commit left it.

    Attributes:
        uuid: the dataset's uuid.
        schema: normalised types of all columns, in the order that SQL shows.
        partition_keys: the columns by which files are laid out.
        file_table: a row a file, decoded as it is asked for: `FILE_FIELDS`, then
            `partition.<column>`, `min.<column>`, `max.<column>` and `nulls.<column>`; ordered by
            position, which decides the overlay. Null means unknown.
        indices: column -> key of its secondary index file, of those that have one.
        metadata: Kartothek's user metadata, `ktk_cube_*` among it.
        physical_schemas: schemas of data files, referred to by the column `physical`.
        properties: what only this library knows of the dataset (roles, configuration).
        next_file: the number that the next file gets; None if an earlier version wrote it.
        index_digests: key of an index file -> what was recorded of it; those of other writers
            and of older versions have none.
        index_segments: column -> the segments of its secondary index, of those without a file.
        derived: arrays that were computed from it; they go with it.
    """

    uuid: str
    schema: pa.Schema
    partition_keys: tuple[str, ...]
    file_table: FileTable
    indices: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    physical_schemas: tuple[pa.Schema, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    index_digests: Mapping[str, FileDigest] = field(default_factory=dict)
    index_segments: Mapping[str, tuple[IndexSegment, ...]] = field(default_factory=dict)
    next_file: int | None = None
    derived: ReadCache[Hashable, pa.Array] = field(
        default_factory=_derived_arrays, init=False, compare=False, repr=False
    )

    @property
    def files(self) -> pa.Table:
        """All columns of the table of files, decoded."""
        table = self.file_table
        return table if isinstance(table, pa.Table) else table.select(table.column_names)

    def file_column(self, name: str) -> pa.ChunkedArray:
        """One column of `files`."""
        return self.file_table.select([name])[name]

    @property
    def rows(self) -> int | None:
        """Number of stored rows (overlaid ones included), None where a file's is unknown."""
        return self._total("rows")

    @property
    def bytes(self) -> int | None:
        """Size of all data files in bytes, None where a file's is unknown."""
        return self._total("bytes")

    def _total(self, column: str) -> int | None:
        files = self.file_table
        if isinstance(files, SegmentedFiles):
            return files.total(column)
        values = self.file_column(column)
        return None if values.null_count else int(pc.sum(values).as_py() or 0)

    @property
    def segments(self) -> list[str]:
        """Keys of the segments in which the table of files is stored."""
        files = self.file_table
        return files.keys if isinstance(files, SegmentedFiles) else []

    def verify_segments(self) -> None:
        """Read all segments, and compare them with what is listed; see `SegmentedFiles.verify`."""
        files = self.file_table
        if isinstance(files, SegmentedFiles):
            files.verify()

    @property
    def keys(self) -> set[str]:
        """Keys of everything that it names: data files, index files, segments."""
        data: list[str] = self.file_column("key").to_pylist()
        return {*data, *self.index_keys, *self.segments}

    @property
    def is_seed(self) -> bool:
        """Whether this is the seed dataset of its cube."""
        return bool(cube_value(self.metadata, IS_SEED))

    @property
    def dimension_columns(self) -> tuple[str, ...]:
        """What addresses its rows, partition columns apart: as it was built, or as its cube says.

        Empty for a plain table.
        """
        own = self.properties.get("dimension_columns")
        known = own or cube_value(self.metadata, DIMENSION_COLUMNS) or ()
        return tuple(name for name in known if self.schema.get_field_index(name) >= 0)

    @property
    def clustered_by(self) -> tuple[str, ...]:
        """By what the rows of its files are sorted, beside what addresses them; a hint."""
        known = self.properties.get("clustered_by") or ()
        return tuple(name for name in known if self.schema.get_field_index(name) >= 0)

    @property
    def comments(self) -> Comments:
        """What people say of it and of the columns that it has."""
        return comments_of(self.metadata).only(self.schema.names)

    @property
    def columns(self) -> frozenset[str]:
        """Names of all columns, partition columns among them."""
        return frozenset(self.schema.names)

    @property
    def indexed_columns(self) -> frozenset[str]:
        """Columns that can be pruned by values: partition columns and secondary indices."""
        return frozenset(self.partition_keys) | frozenset(self.with_index)

    @property
    def with_index(self) -> tuple[str, ...]:
        """Columns with a secondary index."""
        return (*self.indices, *self.index_segments)

    @property
    def index_keys(self) -> tuple[str, ...]:
        """Keys of all files of its secondary indices."""
        segments = (item.key for items in self.index_segments.values() for item in items)
        return (*self.indices.values(), *segments)

    @property
    def large_columns(self) -> tuple[str, ...]:
        """Columns of text or bytes that other programs have in Arrow's large layout."""
        known = self.properties.get(LARGE) or ()
        return tuple(name for name in known if name in self.schema.names)

    @property
    def left_out(self) -> Mapping[str, str]:
        """Columns of its files whose types have no class, and why: nobody sees them."""
        return self.properties.get(LEFT_OUT) or {}

    @property
    def published_as(self) -> frozenset[str]:
        """In which formats every commit is published beside Kartothek's."""
        return frozenset(self.properties.get(PUBLISH) or ())

    @property
    def has_documents(self) -> bool:
        """Whether every commit is published for Kartothek."""
        return not self.properties.get(WITHOUT_DOCUMENTS)

    def published_like(self, base: Snapshot | None) -> Snapshot:
        """The same, in the place of another snapshot: published in the formats of that."""
        known = base.properties if base else {}
        kept = {key: known[key] for key in _OF_PUBLISHING if known.get(key)}
        others = {k: value for k, value in self.properties.items() if k not in _OF_PUBLISHING}
        return replace(self, properties={**others, **kept})

    @property
    def labels(self) -> list[str]:
        """Labels of the files, in order of position."""
        labels: list[str] = self.file_column("label").to_pylist()
        return labels

    def per_column(self, prefix: str) -> pa.Table:
        """The columns of `files` with one prefix, named by the dataset's columns."""
        names = [name for name in self.file_table.column_names if name.startswith(prefix)]
        if not names:
            # A table without columns still has to know its number of rows.
            return self.file_table.select([])
        columns = self.file_table.select(names)
        return columns.rename_columns([name[len(prefix) :] for name in names])

    def refers_to(self, keys: frozenset[str]) -> bool:
        """Whether a data file, a file of an index or a segment of it is among some keys."""
        if not keys.isdisjoint((*self.index_keys, *self.segments)):
            return True
        some = pa.array(sorted(keys), pa.string())
        return bool(pc.any(pc.is_in(self.file_column("key"), value_set=some)).as_py())

    def narrowed(self, conditions: Sequence[Condition]) -> Snapshot:
        """Leave files out that cannot fulfil conditions, where that saves reading segments.

        Args:
            conditions: conjuncts; those on partition columns alone count.
        """
        files, keys = self.file_table, set(self.partition_keys)
        decided = [item for item in conditions if item.columns and item.columns <= keys]
        if not decided or not isinstance(files, SegmentedFiles):
            return self
        return replace(self, file_table=files.narrowed(decided))

    def narrowed_to(self, files: pa.Table) -> Snapshot:
        """Leave files out that surely lie in no partition of some files; see `narrowed`.

        Args:
            files: rows with the columns `partition.<column>`.
        """
        return self.narrowed(partitions_of(files))

    def of_files(self, kept: pa.BooleanArray) -> Snapshot:
        """The same dataset with some of its files; their positions stay.

        Args:
            kept: one value per file.
        """
        return replace(
            self, file_table=some_files(self.file_table, kept, self.file_table.column_names)
        )

    def opened(self, kept: pa.BooleanArray | None = None) -> pa.Table:
        """Give what is needed to open some files: all columns of `files` but statistics.

        Args:
            kept: one value per file; None means all.
        """
        statistics = (MINIMUM_PREFIX, MAXIMUM_PREFIX, NULLS_PREFIX)
        names = [n for n in self.file_table.column_names if not n.startswith(statistics)]
        if kept is None:
            return self.file_table.select(names)
        return some_files(self.file_table, kept, names)

    def changed(self, gone: pa.Table | None, added: pa.Table, **changes: Any) -> Snapshot:
        """The same dataset with other files: those that stay keep their numbers.

        Args:
            gone: files that go, rows with `position` and the partition columns; None: all.
            added: files that come behind all others.
            changes: what else is different.
        """
        first = self.next_number
        numbers = pa.array(np.arange(first, first + added.num_rows))
        added = added.set_column(0, FILE_FIELDS[0], numbers)
        files: FileTable = added
        if gone is not None:
            files = self._with(gone, added, changes.get("schema"))
        return replace(self, file_table=files, next_file=first + added.num_rows, **changes)

    @property
    def next_number(self) -> int:
        """The number that the next file gets."""
        if self.next_file is not None:
            return self.next_file
        greatest = pc.max(self.file_column("position")).as_py()
        return 0 if greatest is None else int(greatest) + 1

    def _with(self, gone: pa.Table, added: pa.Table, schema: pa.Schema | None) -> FileTable:
        files = self.file_table
        left = _bounds_of_others(files.column_names, schema or self.schema)
        known = {item.name: item.type for item in files.schema}
        same = all(known.get(item.name, item.type) == item.type for item in added.schema)
        if isinstance(files, SegmentedFiles) and same and not left:
            new = [item for item in added.schema if item.name not in known]
            return files.changed(gone, added, pa.schema([*files.schema, *new]))
        # Bounds of a column that has left must not come back with another one of its name.
        kept = self.files.drop_columns(left)
        stays = pc.invert(pc.is_in(kept["position"], value_set=gone["position"].combine_chunks()))
        together: FileTable = concat_files([kept.filter(stays), added])
        return together


def _bounds_of_others(names: Iterable[str], schema: pa.Schema) -> list[str]:
    """Columns of a table of files that speak of columns which a schema does not have."""
    bounds, stay = (MINIMUM_PREFIX, MAXIMUM_PREFIX, NULLS_PREFIX), set(schema.names)
    return [n for n in names if n.startswith(bounds) and n.partition(".")[2] not in stay]


def changed_files(before: Snapshot | None, after: Snapshot) -> tuple[pa.Table, pa.Table]:
    """Compare two versions of a dataset; what both store alike is not read.

    Args:
        before: the earlier one; None if there was none.
        after: the later one.

    Returns:
        The files that are gone and those that came, rows of `Snapshot.files`.
    """
    new = after.file_table
    if before is None:
        return new.select(new.column_names).slice(0, 0), after.files
    old = before.file_table
    if isinstance(old, SegmentedFiles) and isinstance(new, SegmentedFiles):
        old, new = old.apart_from(new), new.apart_from(old)
    labels, others = old.select(["label"])["label"], new.select(["label"])["label"]
    return _without(old, labels, others), _without(new, others, labels)


def _without(files: FileTable, labels: pa.ChunkedArray, others: pa.ChunkedArray) -> pa.Table:
    """The files whose labels are not among others."""
    if others.slice(0, len(labels)).equals(labels):
        mask = np.zeros(len(labels), bool)
    elif labels.slice(0, len(others)).equals(others):  # others, and then new ones
        mask = np.arange(len(labels)) >= len(others)
    else:
        mask = ~pc.is_in(labels, value_set=others).to_numpy()
    return some_files(files, pa.array(mask, pa.bool_()), files.column_names)


def files_table(
    labels: Sequence[str] | pa.Array,
    keys: Sequence[str] | pa.Array,
    partitions: pa.Table,
    columns: Mapping[str, Any] | None = None,
    statistics: pa.Table | None = None,
) -> pa.Table:
    """Build the table of files of a snapshot.

    Args:
        labels: one a file, in order of position.
        keys: their data file keys.
        partitions: typed partition values, one row per file, named by column.
        columns: values for any other of `FILE_FIELDS`; what is missing is unknown.
        statistics: columns `min.<c>`, `max.<c>`, `nulls.<c>`, one row per file.

    Returns:
        A table as `Snapshot.files` describes it.
    """
    count = len(labels)
    known: dict[str, Any] = {"position": np.arange(count), "label": labels, "key": keys}
    known.update(columns or {})
    arrays = {
        f.name: pa.array(known[f.name], f.type) if f.name in known else pa.nulls(count, f.type)
        for f in FILE_FIELDS
    }
    for item, values in zip(partitions.schema, partitions.columns, strict=True):
        arrays[PARTITION_PREFIX + item.name] = values
    if statistics is not None:
        arrays.update(zip(statistics.column_names, statistics.columns, strict=True))
    return pa.table(arrays)


def concat_files(tables: Sequence[pa.Table]) -> pa.Table:
    """Put tables of files after one another; statistics that one lacks become unknown."""
    return pa.concat_tables(tables, promote_options="permissive")


def digests_of(files: pa.Table) -> list[FileDigest | None]:
    """Give what was recorded of data files; None for a file of which nothing was.

    Args:
        files: rows of `Snapshot.files`.
    """
    columns = (files[name].to_pylist() for name in ("bytes", "tail", "tail_digest", "digest"))
    return [
        None if tail is None else FileDigest(size, tail, tail_digest, digest)
        for size, tail, tail_digest, digest in zip(*columns, strict=True)
    ]


def is_own(files: FileTable) -> pa.BooleanArray:
    """Tell which data files this library wrote. Bounds in other programs' files may be wrong.

    Where a snapshot does not say it, a digest does, which only our writer records. Files of our
    first versions have neither, and count as those of others.

    Args:
        files: rows of `Snapshot.files`.
    """
    said = files.select(["own", "tail"])
    return pc.coalesce(said["own"], pc.is_valid(said["tail"])).combine_chunks()


def check_partition_values(snapshot: Snapshot, names: Iterable[str]) -> None:
    """Refuse to go on without a partition value that nobody can read.

    Args:
        snapshot: the dataset.
        names: the partition columns that are needed.

    Raises:
        FormatError: with the value and its file.
    """
    if snapshot.properties.get(NULL_FOLDERS):
        return
    for name in names:
        values = snapshot.file_column(PARTITION_PREFIX + name)
        if values.null_count:
            unknown = some_files(
                snapshot.file_table, pc.is_null(values).combine_chunks(), ["label"]
            )
            reason = unreadable_value(
                unknown["label"][0].as_py(), snapshot.partition_keys, name, snapshot.schema
            )
            table = str(snapshot.properties.get("table", TABLE))
            raise FormatError(
                f"Dataset {snapshot.uuid}: {unknown.num_rows:,} files of another program have a "
                f"value of partition column `{name}` that cannot be read, {reason}. Leave the "
                "column out, or rewrite these files; if the value is right, the schema file "
                f"{common_metadata_key(snapshot.uuid, table)} is wrong. Nothing was written."
            )
