"""Snapshots: the committed state of one dataset, one row per file.

See docs/design/files-and-commits.md, Snapshots.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition
from ktk_engine.cube.user_metadata import DIMENSION_COLUMNS, IS_SEED, cube_value
from ktk_engine.errors import FormatError
from ktk_engine.format.comments import Comments, comments_of
from ktk_engine.format.dataset_key import TABLE, common_metadata_key
from ktk_engine.format.file_digest import FileDigest
from ktk_engine.format.label import unreadable_value
from ktk_engine.snapshot.file_segments import PARTITION_PREFIX as PARTITION_PREFIX
from ktk_engine.snapshot.file_segments import SegmentedFiles, partitions_of, total_of
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
    # Fields of `FileDigest`; files of other writers have none.
    pa.field("tail", pa.int64()),
    pa.field("tail_digest", pa.binary()),
    pa.field("digest", pa.binary()),
    # Two files with the same one hold the same cells in the same order (`CellsDigest`).
    pa.field("cells", pa.binary()),
    # Whether this library wrote it; null where no commit has looked at it.
    pa.field("own", pa.bool_()),
)
MINIMUM_PREFIX, MAXIMUM_PREFIX, NULLS_PREFIX = "min.", "max.", "nulls."
NANS_PREFIX = "nans."  # of floats, whose bounds leave NaN out
STATISTICS = (MINIMUM_PREFIX, MAXIMUM_PREFIX, NULLS_PREFIX, NANS_PREFIX)
# Property: the formats in which every commit is published.
PUBLISH = "publish"
# Property: no documents are written for Kartothek; in a cube, the seed dataset has it.
WITHOUT_DOCUMENTS = "without_documents"
_OF_PUBLISHING = (PUBLISH, WITHOUT_DOCUMENTS)
# Property: an unknown partition value is null, since its folders have a text for null.
NULL_FOLDERS = "null_folders"
# Property: columns of other programs' files that are left out, and why. No commit may rewrite
# their rows.
LEFT_OUT = "left_out"
# Property: columns of text or bytes that other programs have in Arrow's large layout. Programs
# that append there compare schemas and indexes with it.
LARGE = "large"
PROPERTIES: Mapping[str, Any] = {  # types of those whose values count
    **dict.fromkeys(("dimension_columns", "clustered_by", LARGE, PUBLISH), list[str] | None),
    LEFT_OUT: Mapping[str, str] | None,
    "constraints": list[Mapping[str, Any]] | None,
    "table": str | None,
}
_LARGEST_DERIVED = 256 * 1024 * 1024


def _derived_arrays() -> ReadCache[Hashable, pa.Array]:
    return ReadCache(_LARGEST_DERIVED, lambda array: int(array.nbytes))


@dataclass(frozen=True)
class Snapshot:
    """One dataset as one commit left it."""

    uuid: str
    schema: pa.Schema  # normalised types, in the order of SQL
    partition_keys: tuple[str, ...]  # the columns by which files are laid out
    # One row per file, decoded on demand: `FILE_FIELDS`, then `partition.<column>`, `min.<column>`,
    # `max.<column>`, `nulls.<column>` and `nans.<column>`. Ordered by position, which decides the
    # overlay. Null means unknown.
    file_table: FileTable
    # column -> key of its index file, if it has one
    indices: Mapping[str, str] = field(default_factory=dict)
    # Kartothek's user metadata, with `ktk_cube_*`
    metadata: Mapping[str, Any] = field(default_factory=dict)
    # of data files; the column `physical` refers to them
    physical_schemas: tuple[pa.Schema, ...] = ()
    # known only to this library: roles, configuration
    properties: Mapping[str, Any] = field(default_factory=dict)
    # By key of the index file. Files of other writers have none.
    index_digests: Mapping[str, FileDigest] = field(default_factory=dict)
    # column -> segments of its index, for columns without an index file
    index_segments: Mapping[str, tuple[IndexSegment, ...]] = field(default_factory=dict)
    next_file: int | None = None  # None if no commit of this library wrote it
    others: Mapping[str, Any] = field(default_factory=dict)  # what later versions say about it
    # Keys of new files that it does not name, since equal ones stay. Not stored.
    spare: frozenset[str] = field(default=frozenset(), compare=False)
    # Arrays computed from this snapshot, kept as long as it lives.
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
        """Number of stored rows, overlaid ones included; None if a file's is unknown."""
        return self._total("rows")

    @property
    def bytes(self) -> int | None:
        """Size of all data files; None if a file's is unknown."""
        return self._total("bytes")

    def _total(self, column: str) -> int | None:
        files = self.file_table
        if isinstance(files, SegmentedFiles):
            return files.total(column)
        return total_of(self.file_column(column))

    @property
    def segments(self) -> list[str]:
        """Keys of the segments in which the table of files is stored."""
        files = self.file_table
        return files.keys if isinstance(files, SegmentedFiles) else []

    def verify_segments(self) -> None:
        """Read all segments and compare them with the list; see `SegmentedFiles.verify`."""
        files = self.file_table
        if isinstance(files, SegmentedFiles):
            files.verify()

    def key_parts(self, known: Snapshot | None = None) -> Iterator[Collection[str]]:
        """Keys of everything that it names: data files, index files, segments; in several parts.

        Leaves out the data files of segments that `known` lists with the same files gone.
        """
        yield {*self.index_keys, *self.segments}
        files = self.file_table
        if not isinstance(files, SegmentedFiles):
            yield self.file_column("key").to_pylist()
            return
        if known is not None and isinstance(known.file_table, SegmentedFiles):
            files = files.apart_from(known.file_table)
        for part in files.parts(["key"]):
            yield part["key"].to_pylist()

    def named_among(self, keys: Set[str]) -> Set[str]:
        """Some of the keys that it names, of data files, index files and segments; or none.

        Its segments' keys come first, and nothing is read if one is among the keys: a clean-up may
        have removed them.
        """
        parts = self.key_parts() if keys else ()
        found = ({key for key in part if key in keys} for part in parts)
        return next((some for some in found if some), set())

    @property
    def is_seed(self) -> bool:
        """Whether this is the seed dataset of its cube."""
        return bool(cube_value(self.metadata, IS_SEED))

    @property
    def dimension_columns(self) -> tuple[str, ...]:
        """The columns that address its rows, without partition columns; empty for a plain table.

        They come from the build of the dataset, or else from its cube's specification.
        """
        own = self.properties.get("dimension_columns")
        known = own or cube_value(self.metadata, DIMENSION_COLUMNS) or ()
        return tuple(name for name in known if self.schema.get_field_index(name) >= 0)

    @property
    def clustered_by(self) -> tuple[str, ...]:
        """The columns by which its files are sorted after those that address rows; a hint."""
        known = self.properties.get("clustered_by") or ()
        return tuple(name for name in known if self.schema.get_field_index(name) >= 0)

    @property
    def comments(self) -> Comments:
        """Comments on the dataset and on its columns."""
        return comments_of(self.metadata).only(self.schema.names)

    @property
    def columns(self) -> frozenset[str]:
        """Names of all columns, partition columns among them."""
        return frozenset(self.schema.names)

    @property
    def indexed_columns(self) -> frozenset[str]:
        """Columns by whose values files can be pruned: partition columns and secondary indexes."""
        return frozenset(self.partition_keys) | frozenset(self.with_index)

    @property
    def with_index(self) -> tuple[str, ...]:
        """Columns with a secondary index."""
        return (*self.indices, *self.index_segments)

    @property
    def index_keys(self) -> tuple[str, ...]:
        """Keys of all files of its secondary indexes."""
        segments = (item.key for items in self.index_segments.values() for item in items)
        return (*self.indices.values(), *segments)

    @property
    def large_columns(self) -> tuple[str, ...]:
        """Columns of text or bytes that other programs store in Arrow's large layout."""
        known = self.properties.get(LARGE) or ()
        return tuple(name for name in known if name in self.schema.names)

    @property
    def left_out(self) -> Mapping[str, str]:
        """Columns of its files that are invisible, since their types have no class, and why."""
        return self.properties.get(LEFT_OUT) or {}

    @property
    def published_as(self) -> frozenset[str]:
        """Formats in which every commit is published in addition to Kartothek's."""
        return frozenset(self.properties.get(PUBLISH) or ())

    @property
    def has_documents(self) -> bool:
        """Whether every commit is published for Kartothek."""
        return not self.properties.get(WITHOUT_DOCUMENTS)

    def published_like(self, base: Snapshot | None) -> Snapshot:
        """The snapshot published in the formats of `base`, whose place it takes."""
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
            # A table without columns still needs its number of rows.
            return self.file_table.select([])
        columns = self.file_table.select(names)
        return columns.rename_columns([name[len(prefix) :] for name in names])

    def narrowed(self, conditions: Sequence[Condition]) -> Snapshot:
        """Leave out files that cannot fulfil the conditions, where that saves reading segments.

        Only conjuncts on partition columns alone count.
        """
        files, keys = self.file_table, set(self.partition_keys)
        decided = [item for item in conditions if item.columns and item.columns <= keys]
        if not decided or not isinstance(files, SegmentedFiles):
            return self
        return replace(self, file_table=files.narrowed(decided))

    def narrowed_to(self, files: pa.Table) -> Snapshot:
        """Leave out files that are surely in no partition of the given ones; see `narrowed`."""
        return self.narrowed(partitions_of(files))

    def of_files(self, kept: pa.BooleanArray) -> Snapshot:
        """The dataset with some of its files, which keep their positions."""
        return replace(
            self, file_table=some_files(self.file_table, kept, self.file_table.column_names)
        )

    def opened(self, kept: pa.BooleanArray | None = None) -> pa.Table:
        """What opening files needs: all columns of `files` but statistics; None means all files."""
        names = [n for n in self.file_table.column_names if not n.startswith(STATISTICS)]
        if kept is None:
            return self.file_table.select(names)
        return some_files(self.file_table, kept, names)

    def changed(
        self, gone: pa.Table | None, added: pa.Table, numbers: int | None = None, **changes: Any
    ) -> Snapshot:
        """The dataset with other files and fields; files that stay keep their numbers.

        `gone` has the column `position` and the partition columns; None removes all files. Files in
        `added` come after all others. They take `numbers` numbers, if given, by their positions.
        """
        first, places = self.next_number, np.arange(added.num_rows)
        if numbers is not None:
            places = added["position"].to_numpy()
        added = added.set_column(0, FILE_FIELDS[0], pa.array(first + places, pa.int64()))
        files: FileTable = added
        if gone is not None:
            files = self._with(gone, added, changes.get("schema"))
        taken = added.num_rows if numbers is None else numbers
        return replace(self, file_table=files, next_file=first + taken, **changes)

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
        # Bounds of a dropped column must not come back with a new column of its name.
        kept = self.files.drop_columns(left)
        stays = pc.invert(pc.is_in(kept["position"], value_set=gone["position"].combine_chunks()))
        together: FileTable = concat_files([kept.filter(stays), added])
        return together


def _bounds_of_others(names: Iterable[str], schema: pa.Schema) -> list[str]:
    """Columns of a table of files that describe columns a schema does not have."""
    stay = set(schema.names)
    return [n for n in names if n.startswith(STATISTICS) and n.partition(".")[2] not in stay]


def changed_files(before: Snapshot | None, after: Snapshot) -> tuple[pa.Table, pa.Table]:
    """The files of `before` that are gone, and those that came; shared segments are not read."""
    new = after.file_table
    if before is None:
        return new.select(new.column_names).slice(0, 0), after.files
    old = before.file_table
    if isinstance(old, SegmentedFiles) and isinstance(new, SegmentedFiles):
        old, new = old.apart_from(new), new.apart_from(old)
    labels, others = old.select(["label"])["label"], new.select(["label"])["label"]
    return _without(old, labels, others), _without(new, others, labels)


def _without(files: FileTable, labels: pa.ChunkedArray, others: pa.ChunkedArray) -> pa.Table:
    """The files whose labels are not among `others`."""
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
    """Build a table of files as `Snapshot.file_table` describes it, in order of position.

    `partitions` has typed values, named by column. `columns` are other `FILE_FIELDS`; what is
    missing is unknown.
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
    """Concatenate tables of files; statistics that one lacks become unknown."""
    return pa.concat_tables(tables, promote_options="permissive")


def digests_of(files: pa.Table) -> list[FileDigest | None]:
    """The recorded digests of data files; None where none was recorded."""
    columns = (files[name].to_pylist() for name in ("bytes", "tail", "tail_digest", "digest"))
    return [
        None if tail is None else FileDigest(size, tail, tail_digest, digest)
        for size, tail, tail_digest, digest in zip(*columns, strict=True)
    ]


def is_own(files: FileTable) -> pa.BooleanArray:
    """Which data files this library wrote; bounds in other programs' files may be wrong."""
    return pc.fill_null(files.select(["own"])["own"], False).combine_chunks()


def check_partition_values(snapshot: Snapshot, names: Iterable[str]) -> None:
    """Raise a `FormatError` if a partition value in one of these columns cannot be read."""
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
