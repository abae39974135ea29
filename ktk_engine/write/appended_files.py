"""Adds files to a dataset that keeps others: appended, replaced or rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.cube.cube_metadata import SUPPRESS_INDEX_ON
from ktk_engine.errors import ConfigurationError
from ktk_engine.files.build_index import pairs_of_files
from ktk_engine.files.index_place import IndexPlace, Pairs, pairs_of_report
from ktk_engine.files.stored_index import get_index
from ktk_engine.files.write_report import WriteReport
from ktk_engine.format.index_file import (
    VALUE,
    build_index,
    flatten_index,
    merge_indices,
    restrict_index,
)
from ktk_engine.gate.constraint import CONSTRAINTS
from ktk_engine.snapshot.column_index import ColumnIndex, index_of, with_indices
from ktk_engine.snapshot.index_segment import IndexSegment
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.write.write_mode import WriteMode


@dataclass(frozen=True)
class AppendedFiles:
    """Puts new files on top of a snapshot; called again each time another commit came first."""

    place: IndexPlace  # for files of indexes
    mode: WriteMode
    started: Snapshot  # the dataset as this write found it
    addition: Snapshot  # the new files, as a dataset of their own
    report: WriteReport  # of the tasks, about the new files' values
    indexes: tuple[str, ...] | None = None  # columns to index; None: those that are indexed
    noted: Mapping[str, Any] = field(default_factory=dict)  # user metadata to add
    # Column -> segments of the new files, whose numbers start at 0; written once for all attempts.
    own: dict[str, tuple[IndexSegment, ...]] = field(default_factory=dict)

    def __call__(self, base: Snapshot | None, attempt: int) -> Snapshot:
        """Give the dataset's new snapshot after `attempt` overtaking commits.

        Raises a `CommitConflictError` if one changed what this write was computed from.
        """
        if base is None:
            raise ConfigurationError(
                f"Dataset {self.addition.uuid} was removed while this run wrote to it. Nothing was "
                "committed. Run it again."
            )
        self.mode.check_unchanged(self.place.store, self.started, base, self.addition)
        gone = self.mode.removed(base, self.addition)
        wanted = base.with_index if self.indexes is None else self.indexes
        indices = {
            name: self._index(base, name, gone, attempt)
            for name in wanted
            if name in self.addition.schema.names  # else its column has left the dataset
        }
        metadata = {**base.metadata, **self.noted}
        if self.indexes is not None and SUPPRESS_INDEX_ON in self.addition.metadata:
            metadata = {**metadata, SUPPRESS_INDEX_ON: self.addition.metadata[SUPPRESS_INDEX_ON]}
        properties = base.properties
        if CONSTRAINTS in self.addition.properties:
            constraints = self.addition.properties[CONSTRAINTS]
            properties = {**properties, CONSTRAINTS: constraints}
        return replace(
            with_indices(extended(base, gone, self.addition), indices),
            metadata=metadata,
            properties=properties,
        )

    def _index(self, base: Snapshot, name: str, gone: pa.Table, attempt: int) -> ColumnIndex:
        """The index on a column: of the files that stay, and of the new ones."""
        place, column = self.place, self.addition.schema.field(name)
        large = name in base.large_columns
        known = index_of(base, name)
        if known is None:
            old = pairs_of_files(place.store, base, _kept(base, gone), column)
            if name in self.report.index_segments:
                known = ColumnIndex(segments=place.segments(column.type, old))
            else:
                new = self._pairs(base, column, base.next_number)
                return place.build(name, column.type, chain(old, new), large=large)
        elif name not in self.report.index_segments and place.is_small(known):
            index = self._merged(base, column, known, gone)
            if (file := place.put_file(name, index, large=large)) is not None:
                return file
        segments = known.segments
        if segments is None:
            segments = place.converted(known, column.type, _kept(base, gone))
        if name not in self.own:
            reported = self.report.index_segments.get(name, ())
            pairs = self._pairs(base, column, 0)
            self.own[name] = (*reported, *place.segments(column.type, pairs))
        added = (item.moved(base.next_number) for item in self.own[name])
        # While commits overtake each other, none merges what the next attempt would merge again.
        merge = place.in_tiers if attempt == 0 else tuple
        return ColumnIndex(segments=merge((*segments, *added)))

    def _merged(
        self, base: Snapshot, column: pa.Field, known: ColumnIndex, gone: pa.Table
    ) -> pa.Table:
        """An index in Kartothek's form, without removed files and with the new ones."""
        index = get_index(self.place.store, known.key, known.digest)
        index = restrict_index(index, gone["label"]) if gone.num_rows else index
        added = [
            flatten_index(build_index(values, names))
            for values, _, names in self._pairs(base, column, 0)
        ]
        if not added:
            return index
        pairs = pa.concat_tables(added)
        return merge_indices(index, build_index(pairs[VALUE], pairs["label"]))

    def _pairs(self, base: Snapshot, column: pa.Field, first: int) -> Iterator[Pairs]:
        """The pairs of new files, numbered from `first`, that are in no task's segment."""
        values, files = self.report.index_values, self.addition.files
        if column.name in values:
            pairs, numbers, labels = pairs_of_report(*values[column.name], files)
            yield pairs, pc.add(numbers, first), labels
        elif any(column.name in schema.names for schema in self.addition.physical_schemas):
            # Another commit built this index while the new files were written.
            for found, number, label in pairs_of_files(self.place.store, base, files, column):
                yield found, first + number, pa.repeat(pa.scalar(label), len(found))


def _kept(base: Snapshot, gone: pa.Table) -> pa.Table:
    """The rows of the table of files that stay."""
    goes = pc.is_in(base.file_column("position"), value_set=gone["position"].combine_chunks())
    return base.files.filter(pc.invert(goes))


def extended(base: Snapshot, gone: pa.Table, addition: Snapshot) -> Snapshot:
    """Put the files of an addition after those that stay; indexes stay as they are."""
    stays = gone.num_rows < base.file_table.num_rows
    known = base.physical_schemas if stays else ()
    physical, places = _joined(known, addition.physical_schemas)
    added = _renumbered(addition.files, places)
    return base.changed(gone, added, schema=addition.schema, physical_schemas=physical)


def _joined(
    known: Sequence[pa.Schema], new: Sequence[pa.Schema]
) -> tuple[tuple[pa.Schema, ...], list[int]]:
    """Append new physical schemas once each; also gives the place of each."""
    joined, places = list(known), []
    for schema in new:
        same = (n for n, s in enumerate(joined) if s.equals(schema, check_metadata=True))
        places.append(next(same, len(joined)))
        if places[-1] == len(joined):
            joined.append(schema)
    return tuple(joined), places


def _renumbered(files: pa.Table, places: Sequence[int]) -> pa.Table:
    """Refer to physical schemas by their new places."""
    position = files.schema.get_field_index("physical")
    numbers = pa.array(places, pa.int32()).take(files["physical"].combine_chunks())
    return files.set_column(position, files.schema.field(position), numbers)
