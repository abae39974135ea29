"""Adds files to a dataset that keeps others: append, replaced partitions, rewritten files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.errors import ConfigurationError
from ktk_engine.format.dataset_key import index_key
from ktk_engine.format.index_file import (
    build_index,
    merge_indices,
    read_index,
    render_index,
    restrict_index,
)
from ktk_engine.log.entry import Operation
from ktk_engine.log.snapshot import Snapshot, concat_files
from ktk_engine.operations.target import Target
from ktk_engine.store.interface import ObjectStore

IndexValues = Mapping[str, tuple[pa.ChunkedArray, pa.ChunkedArray]]


@dataclass(frozen=True)
class Keeping:
    """What stays of a dataset's old content when rows are added.

    Attributes:
        mode: `append` keeps every file; `partitions` replaces exactly those that the new rows
            have; `files` replaces the named ones.
        replaced: labels of the files that go, for `files`.
    """

    mode: Literal["append", "partitions", "files"]
    replaced: frozenset[str] = field(default_factory=frozenset)

    @property
    def operation(self) -> Operation:
        """The verb in the log."""
        return "append" if self.mode == "append" else "replace"

    def touched(self, addition: Snapshot) -> frozenset[str]:
        """Folders of the partitions whose files change."""
        labels = [*addition.labels, *self.replaced]
        return frozenset(label.rpartition("/")[0] for label in labels)

    def removed(self, base: Snapshot, addition: Snapshot) -> pa.BooleanArray:
        """Which of the base's files go."""
        labels = base.files["label"].combine_chunks()
        if self.mode == "files":
            return pc.is_in(labels, value_set=pa.array(sorted(self.replaced), pa.string()))
        if self.mode == "append":
            return pc.is_in(labels, value_set=pa.array([], pa.string()))
        folders = pa.array(sorted(self.touched(addition)), pa.string())
        return pc.is_in(_folders(labels), value_set=folders)


@dataclass(frozen=True)
class Extension:
    """Puts new files on top of a snapshot; called anew whenever another commit came first.

    Attributes:
        store: where index files go.
        keeping: what stays.
        addition: the new files, described as a dataset of their own.
        values: the new files' values, by index column.
        commit: id of the commit, part of every index file's name.
    """

    store: ObjectStore
    keeping: Keeping
    addition: Snapshot
    values: IndexValues
    commit: str

    def __call__(self, base: Snapshot | None, attempt: int) -> Snapshot:
        """Give the dataset's new snapshot.

        Args:
            base: its present one.
            attempt: how often another commit came first.
        """
        if base is None:
            raise ConfigurationError(
                f"Dataset {self.addition.uuid} was removed while this run wrote to it. Nothing was "
                "committed. Run it again."
            )
        gone = self.keeping.removed(base, self.addition)
        kept = base.files.filter(pc.invert(gone))
        added = _shift(self.addition.files, len(base.physical_schemas))
        labels = base.files["label"].filter(gone)
        extended = base.with_files(concat_files([kept, added]))
        return replace(
            extended,
            schema=self.addition.schema,
            indices=self._indices(base, labels),
            physical_schemas=(*base.physical_schemas, *self.addition.physical_schemas),
            bucketing=base.bucketing if base.bucketing == self.addition.bucketing else None,
        )

    def _indices(self, base: Snapshot, gone: pa.ChunkedArray) -> dict[str, str]:
        """Every index of the dataset, without the labels that went, with the new ones."""
        indices = {}
        for name, old_key in base.indices.items():
            index = read_index(self.store.get(old_key))
            if len(gone):
                index = restrict_index(index, gone)
            index = merge_indices(index, build_index(*self.values[name]))
            key = index_key(base.uuid, name, self.store.now(), self.commit)
            self.store.put_if_absent(key, render_index(name, index))
            indices[name] = key
        return indices


def check_layout(target: Target, base: Snapshot) -> None:
    """Refuse to add rows to a dataset that is laid out in another way.

    Raises:
        ConfigurationError: naming what differs; a full refresh lays it out anew.
    """
    own = tuple(base.properties.get("dimension_columns") or target.dimension_columns)
    differences = [
        f"{what} is {', '.join(now) or 'empty'}, the dataset has {', '.join(then) or 'none'}"
        for what, now, then in (
            ("partition_by", target.partition_by, base.partition_keys),
            ("dimension_columns", target.dimension_columns, own),
        )
        if tuple(now) != tuple(then)
    ]
    if differences:
        raise ConfigurationError(
            f"Dataset {target.uuid}: {'; '.join(differences)}. Nothing was written. Run it with "
            "--full-refresh to lay it out anew."
        )


def _folders(labels: pa.StringArray) -> pa.StringArray:
    """The partition's folder of each label, empty if there is none."""
    return pc.replace_substring_regex(labels, r"(?s)(^|/)[^/]*$", "")


def _shift(files: pa.Table, count: int) -> pa.Table:
    """Number the physical schemas behind those that the dataset has."""
    position = files.schema.get_field_index("physical")
    shifted = pc.add(files["physical"], pa.scalar(count, pa.int32()))
    return files.set_column(position, files.schema.field(position), shifted)
