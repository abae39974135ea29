"""What Spark's Python workers need to know to write the files of one dataset."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from ktk_engine.files.task_values import SegmentPlace
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.field_id import with_field_ids
from ktk_engine.types.type_class import plain_type

# A reader that loads a whole row group needs this memory, and a few copies of it.
ROW_GROUP_BYTES = 64 << 20


@dataclass(frozen=True)
class WriteJob:
    """What the workers need to know to write one dataset."""

    store: ObjectStore
    uuid: str
    commit: str  # in every file's name
    schema: pa.Schema  # columns to store, partition columns included
    # the columns by which files are laid out; rows arrive sorted by them
    partition_keys: tuple[str, ...] = ()
    # Dimension columns, which address a cell together with the partition columns. Rows arrive
    # sorted by them, and no two may be equal. Without any, duplicates are fine.
    cell_columns: tuple[str, ...] = ()
    clustered_by: tuple[str, ...] = ()  # rows arrive sorted by these too; duplicates are fine
    required_columns: tuple[str, ...] = ()  # must not be null
    index_columns: tuple[str, ...] = ()  # distinct values are reported per file
    segments: SegmentPlace | None = None  # for indexes with many values; None reports all
    compression: str = "zstd"
    row_group_rows: int = 131_072  # at most
    row_group_bytes: int = ROW_GROUP_BYTES  # at most, before encoding; one row may have more
    # Rows of Arrow: sorted at once, which takes a few times as much memory. More go to the disk.
    sort_bytes: int = 64 << 20
    file_rows: int | None = None  # limit per file, a multiple of `row_group_rows`
    file_bytes: int = 512 * 1024 * 1024  # from this size on, a partition's next file begins
    tasks: int | None = None  # None leaves the number to Spark
    bucket_by: tuple[str, ...] = ()  # deal the rows of a partition to several tasks
    num_buckets: int = 1  # the number of these tasks
    step: int = 0  # number of the commit's write to this dataset, from 0 on
    # Types of columns in the files that stay: a new file has them, too, if they hold its values.
    kept_types: Mapping[str, pa.DataType] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The start of its files' names, which no other write has."""
        return f"{self.commit}.{self.step}" if self.step else self.commit

    @property
    def sorting(self) -> tuple[str, ...]:
        """The columns by which rows arrive sorted."""
        return (*self.partition_keys, *self.cell_columns, *self.clustered_by)

    @property
    def plain_schema(self) -> pa.Schema:
        """The columns without dictionary encodings, which exist only in files."""
        return plain_columns(self.schema)

    def widened(self, columns: Collection[str]) -> WriteJob:
        """The job for values of columns that the files' types do not hold."""
        kept = {name: t for name, t in self.kept_types.items() if name not in columns}
        return replace(self, kept_types=kept)

    @property
    def with_kept_types(self) -> pa.Schema:
        """The columns in the types of files."""
        return pa.schema([f.with_type(self.kept_types.get(f.name, f.type)) for f in self.schema])

    @cached_property
    def file_schema(self) -> pa.Schema:
        """The columns that files have, with their ids."""
        kept = self.with_kept_types
        return with_field_ids(pa.schema([f for f in kept if f.name not in self.partition_keys]))


def plain_columns(schema: pa.Schema) -> pa.Schema:
    """Columns without dictionary encodings, which exist only in files."""
    return pa.schema([field.with_type(plain_type(field.type)) for field in schema])
