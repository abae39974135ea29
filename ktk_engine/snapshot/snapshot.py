"""Snapshots: the committed state of one dataset, one row per file.

See docs/design/files-and-commits.md, Snapshots.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ktk_engine.cube.cube_metadata import DIMENSION_COLUMNS, IS_SEED, cube_value
from ktk_engine.errors import FormatError, ObjectNotFoundError, UnsupportedFormatError
from ktk_engine.format.comments import Comments, comments_of
from ktk_engine.format.dataset_key import TABLE, common_metadata_key
from ktk_engine.format.file_digest import DAMAGE, FileDigest, digest_of_json
from ktk_engine.format.label import unreadable_value
from ktk_engine.format.parse_json import check_count, parse_json
from ktk_engine.messages import Message, Remedy
from ktk_engine.snapshot.snapshot_delta import Delta, ExtendedFiles, SnapshotBase, find_delta
from ktk_engine.snapshot.stored_files import FileTable, StoredFiles, some_files
from ktk_engine.store.interface import ObjectStore
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
PARTITION_PREFIX, MINIMUM_PREFIX, MAXIMUM_PREFIX, NULLS_PREFIX = (
    "partition.",
    "min.",
    "max.",
    "nulls.",
)
# Where the properties keep in which formats every commit is published.
PUBLISH = "publish"
# Where they say that an unknown partition value is null: of folders, which have a text for it.
NULL_FOLDERS = "null_folders"
# Where the properties keep which columns of other programs' files are left out, and why: nothing
# that would write their rows anew is committed.
LEFT_OUT = "left_out"
# Where they keep which columns of text, or of bytes, other programs have in Arrow's large layout:
# programs that append there compare schemas and indices with it.
LARGE = "large"
MAX_FILES = 20_000_000
_LARGEST_DERIVED = 256 * 1024 * 1024
_ROW_GROUP = 32_768  # a plan of few files decodes few groups
_FORMAT, _DELTA_FORMAT = 1, 2
_METADATA_KEY = b"ktk"


class _Files:
    """The field `Snapshot.files`: a stored table is decoded when somebody asks for all of it."""

    def __get__(self, snapshot: Snapshot | None, owner: type) -> pa.Table:
        if snapshot is None:
            raise AttributeError("files")  # so a snapshot has no files by default
        table = snapshot.file_table
        return table if isinstance(table, pa.Table) else table.select(table.column_names)

    def __set__(self, snapshot: Snapshot, files: FileTable) -> None:
        snapshot.__dict__["file_table"] = files


def _derived_arrays() -> ReadCache[Hashable, pa.Array]:
    return ReadCache(_LARGEST_DERIVED, lambda array: int(array.nbytes))


@dataclass(frozen=True)
class Snapshot:
    """One dataset as one commit left it.

    Attributes:
        uuid: the dataset's uuid.
        schema: normalised types of all columns, in the order that SQL shows.
        partition_keys: the columns by which files are laid out.
        files: `FILE_FIELDS`, then `partition.<column>`, `min.<column>`, `max.<column>` and
            `nulls.<column>`; ordered by position, which decides the overlay. Null means unknown.
        indices: column -> key of its secondary index file.
        metadata: Kartothek's user metadata, `ktk_cube_*` among it.
        physical_schemas: schemas of data files, referred to by the column `physical`.
        properties: what only this library knows of the dataset (roles, configuration).
        index_digests: key of an index file -> what was recorded of it; those of other writers
            and of older versions have none.
        derived: arrays that were computed of it, by whoever did; they go with it.
    """

    uuid: str
    schema: pa.Schema
    partition_keys: tuple[str, ...]
    files: _Files = _Files()
    indices: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    physical_schemas: tuple[pa.Schema, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    index_digests: Mapping[str, FileDigest] = field(default_factory=dict)
    derived: ReadCache[Hashable, pa.Array] = field(
        default_factory=_derived_arrays, init=False, compare=False, repr=False
    )

    @property
    def file_table(self) -> FileTable:
        """The same as `files`, of which is decoded only what is asked for."""
        found: FileTable = self.__dict__["file_table"]
        return found

    def file_column(self, name: str) -> pa.ChunkedArray:
        """One column of `files`."""
        return self.file_table.select([name])[name]

    @property
    def rows(self) -> int | None:
        """Number of stored rows (overlaid ones included), None where a file's is unknown."""
        return _total(self.file_column("rows"))

    @property
    def bytes(self) -> int | None:
        """Size of all data files in bytes, None where a file's is unknown."""
        return _total(self.file_column("bytes"))

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
        return frozenset(self.partition_keys) | frozenset(self.indices)

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

    def published_like(self, base: Snapshot | None) -> Snapshot:
        """The same, in the place of another snapshot: published in the formats of that."""
        kept = {PUBLISH: sorted(base.published_as)} if base and base.published_as else {}
        others = {key: value for key, value in self.properties.items() if key != PUBLISH}
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
        """Whether a data or index file of it is among some keys."""
        if not keys.isdisjoint(self.indices.values()):
            return True
        some = pa.array(sorted(keys), pa.string())
        return bool(pc.any(pc.is_in(self.file_column("key"), value_set=some)).as_py())

    def of_files(self, kept: pa.BooleanArray) -> Snapshot:
        """The same dataset with some of its files; their positions stay.

        Args:
            kept: one value per file.
        """
        return replace(self, files=some_files(self.file_table, kept, self.file_table.column_names))

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

    def with_files(self, files: pa.Table, **changes: Any) -> Snapshot:
        """The same dataset with other files, renumbered in their order."""
        positions = pa.array(np.arange(files.num_rows))
        return replace(self, files=files.set_column(0, FILE_FIELDS[0], positions), **changes)


def _total(column: pa.ChunkedArray) -> int | None:
    if column.null_count:
        return None
    return int(pc.sum(column).as_py() or 0)


def files_table(
    labels: Sequence[str],
    keys: Sequence[str],
    partitions: pa.Table,
    columns: Mapping[str, Sequence[int | None]] | None = None,
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
    known: dict[str, Any] = {"position": range(count), "label": labels, "key": keys}
    known.update(columns or {})
    arrays = {f.name: pa.array(known.get(f.name) or [None] * count, f.type) for f in FILE_FIELDS}
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


def write_snapshot(
    store: ObjectStore, key: str, snapshot: Snapshot, base: SnapshotBase | None = None
) -> tuple[str, str]:
    """Store a snapshot under a key that no other has.

    Args:
        store: where.
        key: the key.
        snapshot: what to store.
        base: a whole snapshot. If little changed since, only that is written.

    Returns:
        SHA-256 of the file, in hexadecimal, to verify it by; and the key of the base if that is
        needed to read it, else nothing.

    Raises:
        ObjectExistsError: the key is taken.
    """
    check_partition_values(snapshot, snapshot.partition_keys)
    files = snapshot.files
    delta = find_delta(base.files, files) if base else None
    document: dict[str, Any] = {
        "format": _DELTA_FORMAT if delta else _FORMAT,
        "uuid": snapshot.uuid,
        "schema": _encode_schema(snapshot.schema),
        "partition_keys": snapshot.partition_keys,
        "indices": dict(snapshot.indices),
        "metadata": dict(snapshot.metadata),
        "physical_schemas": [_encode_schema(schema) for schema in snapshot.physical_schemas],
        "properties": dict(snapshot.properties),
        "index_digests": {
            index: snapshot.index_digests[index].as_json()
            for index in snapshot.indices.values()
            if index in snapshot.index_digests
        },
    }
    if base and delta:
        document["base"] = {"key": base.key, "sha256": base.sha256}
        document["removed"] = delta.removed.tolist()
        files = files.slice(files.num_rows - delta.added.num_rows)
    table = files.replace_schema_metadata({_METADATA_KEY: json.dumps(document)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", row_group_size=_ROW_GROUP)
    data = sink.getvalue().to_pybytes()
    store.put_if_absent(key, data)
    return hashlib.sha256(data).hexdigest(), base.key if base and delta else ""


def read_snapshot(store: ObjectStore, key: str, sha256: str = "") -> Snapshot:
    """Load a snapshot and verify it.

    Args:
        store: where it lies.
        key: its key.
        sha256: what the log entry says of it; empty if an older version wrote that.

    Raises:
        ObjectNotFoundError: there is none under this key.
        FormatError: the file is damaged.
        UnsupportedFormatError: it is of a newer format.
    """
    try:
        data = store.get(key)
    except ObjectNotFoundError as error:
        raise ObjectNotFoundError(
            f"Snapshot {key} of {store.url} is missing, but its log entry names it. {_RESTORE}"
        ) from error
    if sha256 and hashlib.sha256(data).hexdigest() != sha256:
        reason = "its content does not fit the digest in its log entry"
        raise FormatError(_damaged(store, key, reason))
    try:
        found = _parse_snapshot(store, data, f"Snapshot {key} of {store.url}")
        # Without a digest anything may be damaged: then now is the time to find out.
        return found if sha256 else replace(found, files=found.files)
    except UnsupportedFormatError:
        raise
    except DAMAGE as error:
        raise FormatError(_damaged(store, key, error)) from error


_RESTORE = "Restore the file from a backup of the store, or rebuild the dataset."


def _damaged(store: ObjectStore, key: str, reason: object) -> str:
    return f"Snapshot {key} of {store.url} is damaged: {reason}. {_RESTORE}"


def _parse_snapshot(store: ObjectStore, data: bytes, what: str) -> Snapshot:
    stored = StoredFiles(data, FILE_FIELDS)
    check_count(stored.num_rows, what, MAX_FILES)
    document: dict[str, Any] = parse_json(stored.metadata[_METADATA_KEY], what)
    if document["format"] not in (_FORMAT, _DELTA_FORMAT):
        raise UnsupportedFormatError(
            Message(
                f"{what} has format {document['format']}; this version reads formats up to "
                f"{_DELTA_FORMAT}. ",
                Remedy("upgrade"),
            )
        )
    files: FileTable = stored
    if document["format"] == _DELTA_FORMAT:
        removed = np.array(document["removed"], np.int64)
        files = ExtendedFiles(_read_base(store, document), Delta(removed, stored))
    return Snapshot(
        uuid=document["uuid"],
        schema=_decode_schema(document["schema"]),
        partition_keys=tuple(document["partition_keys"]),
        files=files,
        indices=document["indices"],
        metadata=document["metadata"],
        physical_schemas=tuple(_decode_schema(text) for text in document["physical_schemas"]),
        properties=document["properties"],
        index_digests={
            index: digest_of_json(content)
            for index, content in document.get("index_digests", {}).items()
        },
    )


def _read_base(store: ObjectStore, document: Mapping[str, Any]) -> SnapshotBase:
    """Load the whole snapshot that a delta builds on."""
    key, sha256 = document["base"]["key"], document["base"]["sha256"]
    if not sha256:
        raise ValueError("it does not say which base it builds on")
    found = read_snapshot(store, key, sha256)
    if found.uuid != document["uuid"] or not isinstance(found.file_table, StoredFiles):
        raise ValueError(f"it builds on {key}, which is no whole snapshot of its dataset")
    return SnapshotBase(key, sha256, found.file_table)


def _encode_schema(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode("ascii")


def _decode_schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
