"""Adds files to a dataset that keeps others: append, replaced partitions, rewritten files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.cube.cube_metadata import SUPPRESS_INDEX_ON
from ktk_engine.errors import ConfigurationError
from ktk_engine.files.build_index import index_of_files
from ktk_engine.files.stored_index import get_index, put_index
from ktk_engine.format.dataset_key import index_key
from ktk_engine.format.index_file import (
    build_index,
    merge_indices,
    restrict_index,
)
from ktk_engine.gate.constraint import CONSTRAINTS
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore
from ktk_engine.write.retained import Retained

IndexValues = Mapping[str, tuple[pa.ChunkedArray, pa.ChunkedArray]]


@dataclass(frozen=True)
class Extension:
    """Puts new files on top of a snapshot; called again whenever another commit came first.

    Attributes:
        store: where index files go.
        retained: what stays.
        started: the dataset as this write found it.
        addition: the new files, described as a dataset of their own.
        values: the new files' values, by index column.
        commit: what tells this write from others, part of every index file's name.
        indexes: the columns to be indexed; None for those that are.
        noted: what users note of the dataset, beside what they noted before.
    """

    store: ObjectStore
    retained: Retained
    started: Snapshot
    addition: Snapshot
    values: IndexValues
    commit: str
    indexes: tuple[str, ...] | None = None
    noted: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, base: Snapshot | None, attempt: int) -> Snapshot:
        """Give the dataset's new snapshot.

        Args:
            base: its present one.
            attempt: how often another commit came first.

        Raises:
            CommitConflictError: another commit changed what this one was computed from.
        """
        if base is None:
            raise ConfigurationError(
                f"Dataset {self.addition.uuid} was removed while this run wrote to it. Nothing was "
                "committed. Run it again."
            )
        self.retained.check_unchanged(self.store, self.started, base, self.addition)
        gone = self.retained.removed(base, self.addition)
        indices, digests = {}, {}
        for name in base.indices if self.indexes is None else self.indexes:
            if name in self.addition.schema.names:  # else its column has left the dataset
                key = index_key(base.uuid, name, self.store.now(), self.commit)
                index = self._index(base, name, gone)
                large = name in base.large_columns
                digests[key] = put_index(self.store, key, name, index, large=large)
                indices[name] = key
        metadata = {**base.metadata, **self.noted}
        if self.indexes is not None and SUPPRESS_INDEX_ON in self.addition.metadata:
            metadata = {**metadata, SUPPRESS_INDEX_ON: self.addition.metadata[SUPPRESS_INDEX_ON]}
        properties = base.properties
        if CONSTRAINTS in self.addition.properties:
            constraints = self.addition.properties[CONSTRAINTS]
            properties = {**properties, CONSTRAINTS: constraints}
        return replace(
            extended(base, gone, self.addition),
            indices=indices,
            index_digests=digests,
            metadata=metadata,
            properties=properties,
        )

    def _index(self, base: Snapshot, name: str, gone: pa.Table) -> pa.Table:
        """The index on a column: of the files that stay, and of the new ones."""
        if name in base.indices:
            key = base.indices[name]
            index = get_index(self.store, key, base.index_digests.get(key))
            index = restrict_index(index, gone["label"]) if gone.num_rows else index
        else:
            known = pc.is_in(base.file_column("label"), value_set=gone["label"].combine_chunks())
            kept = base.files.filter(pc.invert(known))
            index = index_of_files(self.store, base, kept, self.addition.schema.field(name))
        if name in self.values:
            return merge_indices(index, build_index(*self.values[name]))
        if not any(name in schema.names for schema in self.addition.physical_schemas):
            return index  # the new rows lack the column
        # Another commit has built this index while the new files were written.
        column = self.addition.schema.field(name)
        return merge_indices(index, index_of_files(self.store, base, self.addition.files, column))


def extended(base: Snapshot, gone: pa.Table, addition: Snapshot) -> Snapshot:
    """Put files behind those of a dataset that stay; its indices are left as they are.

    Args:
        base: the dataset.
        gone: rows of its table of files, which go.
        addition: the new files, described as a dataset of their own.
    """
    physical, places = _joined(base.physical_schemas, addition.physical_schemas)
    added = _renumbered(addition.files, places)
    return base.changed(gone, added, schema=addition.schema, physical_schemas=physical)


def _joined(
    known: Sequence[pa.Schema], new: Sequence[pa.Schema]
) -> tuple[tuple[pa.Schema, ...], list[int]]:
    """Put physical schemas after those that the dataset has, each once.

    Returns:
        All of them, and where each new one stands.
    """
    joined = list(known)
    for schema in new:
        if schema not in joined:
            joined.append(schema)
    return tuple(joined), [joined.index(schema) for schema in new]


def _renumbered(files: pa.Table, places: Sequence[int]) -> pa.Table:
    """Refer to physical schemas by their new places."""
    position = files.schema.get_field_index("physical")
    numbers = pa.array(places, pa.int32()).take(files["physical"].combine_chunks())
    return files.set_column(position, files.schema.field(position), numbers)
