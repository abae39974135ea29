"""Puts new files on top of what a dataset has, whatever was committed meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.cube.user_metadata import SUPPRESS_INDEX_ON
from ktk_engine.errors import CommitConflictError, ConfigurationError, ObjectNotFoundError
from ktk_engine.files.index_place import IndexPlace
from ktk_engine.files.written_files import WrittenFiles
from ktk_engine.format.label import folders_of
from ktk_engine.gate.constraint import CONSTRAINTS
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.change.change_set import Rebase
from ktk_engine.plan.overlay import same_partitions
from ktk_engine.plan.plan_dataset import address_partitions
from ktk_engine.snapshot.column_index import with_indices
from ktk_engine.snapshot.snapshot import Snapshot, changed_files, concat_files
from ktk_engine.store.interface import ObjectStore
from ktk_engine.write.affected_files import may_hold
from ktk_engine.write.equal_files import equal_files


def rebased(
    target: WriteRequest,
    started: Snapshot,
    addition: Snapshot,
    place: IndexPlace,
    written: WrittenFiles,
    indexes: Sequence[str] | None = None,
    noted: Mapping[str, Any] | None = None,
) -> Rebase:
    """Make the change that puts new files on top of a dataset that keeps others.

    Args:
        target: says which files go.
        started: the dataset as the write found it.
        addition: the new files, as a dataset of their own.
        place: where files of indexes go.
        written: the new files with the values of indexes.
        indexes: the columns to index; None for those that are indexed.
        noted: user metadata to add.

    Returns:
        A function that raises a `CommitConflictError` if another commit has changed what this write
        was computed from.
    """

    def rebase(base: Snapshot | None, attempt: int) -> Snapshot:
        if base is None:
            raise ConfigurationError(
                f"Dataset {addition.uuid} was removed while this run wrote to it. Nothing was "
                "committed. Run it again."
            )
        _check_unchanged(target, place.store, started, base, addition)
        gone = removed(target, base, addition)
        names = base.with_index if indexes is None else indexes
        equal = equal_files(place.store, base, gone, addition.files, whole=target.mode != "files")
        put = exchanged(base, gone, equal, addition, place, written, names, attempt)
        metadata = {**base.metadata, **(noted or {})}
        if indexes is not None and SUPPRESS_INDEX_ON in addition.metadata:
            metadata[SUPPRESS_INDEX_ON] = addition.metadata[SUPPRESS_INDEX_ON]
        properties = dict(base.properties)
        if CONSTRAINTS in addition.properties:
            properties[CONSTRAINTS] = addition.properties[CONSTRAINTS]
        return replace(put, metadata=metadata, properties=properties)

    return rebase


def exchanged(
    base: Snapshot,
    gone: pa.Table,
    equal: tuple[pa.BooleanArray, pa.BooleanArray],
    addition: Snapshot,
    place: IndexPlace,
    written: WrittenFiles,
    indexes: Collection[str],
    attempt: int,
) -> Snapshot:
    """Put new files in the place of others, except for those that are equal; indexes follow.

    `equal` is what `equal_files` says; see `rebased` for the others.
    """
    stays, needless = equal
    gone, new = gone.filter(pc.invert(stays)), pc.invert(needless)
    others = written.some(new)
    indices = {
        name: others.index(place, base, addition.schema.field(name), gone, attempt)
        for name in indexes
        if name in addition.schema.names  # else its column has left the dataset
    }
    spare = addition.file_column("key").filter(needless).to_pylist()
    if not others.files.num_rows:
        spare += [item.key for items in written.index_segments.values() for item in items]
    put = with_indices(extended(base, gone, addition, new), indices)
    return replace(put, spare=base.spare.union(spare))


def extended(
    base: Snapshot, gone: pa.Table, addition: Snapshot, new: pa.BooleanArray | None = None
) -> Snapshot:
    """Put an addition's files, or some of them, after those that stay; indexes do not change."""
    stays = gone.num_rows < base.file_table.num_rows
    known, schema = base.physical_schemas if stays else (), addition.schema
    added = addition.files if new is None else addition.files.filter(new)
    if not added.num_rows:
        return base.changed(gone, added, schema=schema, physical_schemas=known)
    physical, places = _joined(known, addition.physical_schemas)
    added, numbers = _renumbered(added, places), addition.file_table.num_rows
    return base.changed(gone, added, numbers, schema=schema, physical_schemas=physical)


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


def touched(target: WriteRequest, addition: Snapshot) -> frozenset[str] | None:
    """Folders of the partitions that are replaced as a whole; None means all."""
    if target.mode == "nothing":
        return None
    if target.mode != "partitions":
        return frozenset()
    return frozenset(label.rpartition("/")[0] for label in addition.labels)


def removed(target: WriteRequest, base: Snapshot, addition: Snapshot) -> pa.Table:
    """The base's files that go: rows of its table of files."""
    if target.mode == "append":
        return base.file_table.schema.empty_table()
    if target.mode == "nothing":
        return base.files
    gone = addition.files if target.mode == "partitions" else _replaced(target)
    files = base.narrowed_to(gone).files
    if target.mode == "partitions":
        folders = pc.unique(folders_of(addition.files["label"].combine_chunks()))
        return files.filter(pc.is_in(folders_of(files["label"]), value_set=folders))
    return files.filter(pc.is_in(files["label"], value_set=gone["label"].combine_chunks()))


def _replaced(target: WriteRequest) -> pa.Table:
    nothing = pa.table({"label": pa.array([], pa.string())})
    return nothing if target.replaced is None else target.replaced


def _check_unchanged(
    target: WriteRequest, store: ObjectStore, started: Snapshot, base: Snapshot, addition: Snapshot
) -> None:
    """Raise a `CommitConflictError` if another commit changed what the rows were computed from.

    `started` is the dataset as this write found it, `base` as it is now.
    """
    if started.schema != base.schema:
        raise _conflict(base, "its columns changed")
    if target.mode != "files" and not target.looked_for:
        return  # the log's own check is enough
    try:
        gone, came = changed_files(started, base)
    except ObjectNotFoundError as error:
        raise _conflict(base, "a clean-up removed what this one was computed from") from error
    lost = pc.is_in(_replaced(target)["label"], value_set=gone["label"].combine_chunks())
    if pc.any(lost).as_py():
        raise _conflict(base, "another commit rewrote files that this one rewrites")
    if not came.num_rows:
        return
    new = replace(base, file_table=came)
    if any(may_hold(conditions, store, new) for conditions in target.looked_for):
        what = "that this one would replace" if target.mode == "files" else "with its unique keys"
        raise _conflict(base, f"another commit added rows {what}")
    if target.mode != "files" or not base.dimension_columns:
        return
    rewritten = concat_files([removed(target, started, addition), addition.files])
    if _overlaid(new, rewritten):
        raise _conflict(base, "another commit added cells to those that this one rewrites")


def _overlaid(new: Snapshot, touched: pa.Table) -> bool:
    """Whether files are in a touched partition: their order would decide which row a cell has."""
    both = replace(new, file_table=concat_files([new.files, touched]))
    ours = pa.array([False] * new.files.num_rows + [True] * touched.num_rows)
    shared = same_partitions(both, ours, address_partitions(new))
    return bool(pc.any(shared.slice(0, new.files.num_rows)).as_py())


def _conflict(base: Snapshot, reason: str) -> CommitConflictError:
    return CommitConflictError(
        f"Dataset {base.uuid} was changed while this run wrote to it: {reason}. Nothing was "
        "committed. Run it again."
    )
