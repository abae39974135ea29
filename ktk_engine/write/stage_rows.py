"""Writes the rows of a validated write as files, without committing them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.cube.user_metadata import cube_metadata, is_of_a_build
from ktk_engine.errors import DataError
from ktk_engine.files import task_values
from ktk_engine.files.index_place import IndexPlace
from ktk_engine.files.physical_schemas import kept_types
from ktk_engine.files.task_values import SegmentPlace
from ktk_engine.files.write_job import WriteJob
from ktk_engine.files.written_files import DataFinding, WrittenFiles
from ktk_engine.format.comments import Comments, with_comments
from ktk_engine.formatting import counted
from ktk_engine.gate.constraint import CONSTRAINTS
from ktk_engine.gate.gate import ValidatedWrite
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.change.change_set import DatasetChange
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.messages import Message, Remedy
from ktk_engine.snapshot.column_index import with_indices
from ktk_engine.snapshot.snapshot import LARGE, PUBLISH, WITHOUT_DOCUMENTS, Snapshot
from ktk_engine.types.refusal import WriteProblem, refusal
from ktk_engine.types.type_class import normalize
from ktk_engine.write.equal_files import equal_files
from ktk_engine.write.rebase import exchanged, rebased, removed, touched
from ktk_engine.write.rows import ArrowRows, Rows, write_parquet
from ktk_engine.write.write_result import RowChanges, WriteResult


def stage_rows(
    transaction: ScopeTransaction, write: ValidatedWrite, rows: Rows, step: int = 0
) -> WriteResult:
    """Write rows as new files, which readers do not see before the transaction's commit.

    `check_constraints` has run already. `step` counts the transaction's earlier writes to this
    dataset. Raises a `DataError` if rows break a rule.
    """
    transaction.announce(write.target.uuid)
    target, job = write.target, _job(write, transaction.commit_id, step)
    written = write_parquet(rows, job)
    if written.findings:
        raise DataError(_refusal(write, written.findings), written.findings)
    addition = _describe(write, job, written)
    write = _verified(write, rows, addition)
    transaction.depends_on(write.target.reads)
    transaction.change(_change(write, addition, written, job))
    for uuid in map(target.scope.uuid_of, write.leaving):
        transaction.change(DatasetChange(uuid, "remove", None))
    count, many = addition.rows or 0, _note_of_many_files(target, addition)
    return WriteResult(
        target.uuid,
        0,
        count,
        addition.files.num_rows,
        addition.bytes or 0,
        notes=tuple(
            filter(None, (*write.notes, *_index_notes(job, write.base), write.claimed, many))
        ),
        changes=RowChanges(count, deleted=_rows_gone(write, addition)),
        leaving=write.leaving,
    )


def _note_of_many_files(target: WriteRequest, addition: Snapshot) -> str:
    """Say that a partition column has a value for nearly each row; empty if none has."""
    files, rows = addition.files.num_rows, addition.rows
    if not target.partition_by or files < _MANY_FILES or rows is None or rows > 10 * files:
        return ""
    columns = ", ".join(target.partition_by)
    return (
        f"{files:,} files for {rows:,} rows: partition_by ({columns}) makes a file for each value. "
        "An index finds single values in few files"
    )


def _verified(write: ValidatedWrite, rows: Rows, addition: Snapshot) -> ValidatedWrite:
    """Verify the constraints on the written files; the commit depends on what was read for it."""
    target, base = write.target, write.base
    if not target.constraints or isinstance(rows, ArrowRows):
        return write  # a table's rows are not in Spark: see `check_constraints`
    from ktk_engine.write.verify_constraints import verify_constraints

    kept = None
    if base is not None:
        gone = removed(target, base, addition)
        kept = base.changed(gone, gone.slice(0, 0))
    found = verify_constraints(write.state.store, rows, target.constraints, addition, kept)
    looked_for = (*target.looked_for, *found)
    return replace(write, target=replace(target, looked_for=looked_for)) if base else write


def _index_notes(job: WriteJob, base: Snapshot | None) -> list[str]:
    """What became of the indexes of a dataset that keeps files."""
    if base is None:
        return []
    known, wanted = set(base.with_index), set(job.index_columns)
    dropped = (known - wanted) & set(job.schema.names)
    return [
        *(f"index on {name} built" for name in sorted(wanted - known)),
        *(f"index on {name} dropped" for name in sorted(dropped)),
    ]


def _rows_gone(write: ValidatedWrite, addition: Snapshot) -> int:
    """The number of rows in replaced files, if known: other writers' files do not tell it."""
    if write.base is None:
        return 0
    return int(pc.sum(removed(write.target, write.base, addition)["rows"]).as_py() or 0)


def _job(write: ValidatedWrite, commit_id: str, step: int) -> WriteJob:
    target, cells = write.target, write.target.dimension_columns
    required = dict.fromkeys([*target.partition_by, *cells, *write.indexes])
    return WriteJob(
        store=write.state.store,
        uuid=target.uuid,
        commit=commit_id,
        schema=_physical(write),
        kept_types=_kept_types(write),
        partition_keys=target.partition_by,
        cell_columns=tuple(c for c in cells if c not in target.partition_by),
        clustered_by=target.clustered_by,
        # A missing value has no form in the path of a file.
        required_columns=tuple(required) if target.cube else target.partition_by,
        index_columns=write.indexes,
        segments=SegmentPlace(
            write.state.scope.segment_folder(commit_id), target.uuid, task_values.REPORTED_PAIRS
        ),
        compression=target.compression,
        row_group_rows=target.row_group_rows,
        tasks=target.buckets,
        bucket_by=target.bucketing,
        num_buckets=target.num_buckets,
        step=step,
    )


def _physical(write: ValidatedWrite) -> pa.Schema:
    """Payload keeps its width; partition columns get their class's container."""
    laid_out = write.target.partition_by
    return pa.schema(
        [write.committed.field(f.name) if f.name in laid_out else f for f in write.physical]
    )


def _kept_types(write: ValidatedWrite) -> Mapping[str, pa.DataType]:
    """The types of columns in files that stay, where those of the rows are others."""
    target, base = write.target, write.base
    if base is None or target.mode == "nothing":
        return {}
    return kept_types(base, target.replaced, _physical(write))


def _describe(write: ValidatedWrite, job: WriteJob, written: WrittenFiles) -> Snapshot:
    """Describe the new files as a dataset of their own, without indexes."""
    target, now = write.target, job.store.now()
    metadata = {**target.metadata, "creation_time": now.replace(tzinfo=None).isoformat()}
    if target.cube:
        metadata |= _cube_metadata(write)
    return Snapshot(
        uuid=target.uuid,
        schema=write.committed,
        partition_keys=target.partition_by,
        file_table=written.files,
        metadata=metadata,
        physical_schemas=written.schemas,
        properties={
            "dimension_columns": list(target.dimension_columns),
            "clustered_by": list(target.clustered_by),
            CONSTRAINTS: [item.as_dict() for item in target.constraints],
        },
    )


def _change(
    write: ValidatedWrite, addition: Snapshot, written: WrittenFiles, job: WriteJob
) -> DatasetChange:
    """Replace all of the dataset, or add to what is there."""
    target, base = write.target, write.base
    folder = write.state.scope.segment_folder(job.commit)
    place = IndexPlace(job.store, target.uuid, job.name, folder)
    if base is not None:
        # The configuration cannot name a column that the new rows lack: its index stays.
        others = [name for name in base.with_index if name not in job.schema.names]
        indexes = (*job.index_columns, *others)
        rebase = rebased(target, base, addition, place, written, indexes, target.metadata)
        folders = touched(target, addition)
        change = DatasetChange(target.uuid, target.operation, rebase, folders)
        return _claimed(change, target)

    @cache
    def built() -> Snapshot:
        fields = map(addition.schema.field, written.index_values)
        indices = {item.name: written.new_index(place, item) for item in fields}
        return with_indices(addition, indices)

    def put(base: Snapshot, attempt: int) -> Snapshot:
        """The new files, or those of an equal layout that they are equal to."""
        names = {*written.index_values}
        wanted = (addition.schema, addition.partition_keys, addition.dimension_columns, names)
        known = (base.schema, base.partition_keys, base.dimension_columns, {*base.with_index})
        if known != wanted:
            return built()
        gone = base.opened()
        equal = equal_files(place.store, base, gone, addition.files, whole=True)
        if (gone.num_rows or addition.files.num_rows) and not equal[0].true_count:
            return built()
        return exchanged(base, gone, equal, addition, place, written, names, attempt)

    def rebuilt(base: Snapshot | None, attempt: int) -> Snapshot:
        """Metadata of users and other programs belongs to the dataset, so it survives new rows."""
        if base is None:
            return built()
        noted = {key: value for key, value in base.metadata.items() if not is_of_a_build(key)}
        made = put(base, attempt)
        known, said = base.comments.only(made.schema.names), addition.comments
        texts = {**known.columns, **said.columns}
        comments = Comments(said.relation or known.relation, texts)
        metadata = with_comments({**noted, **addition.metadata}, comments)
        kept = {
            key: base.properties[key]
            for key in ("table", PUBLISH, WITHOUT_DOCUMENTS, LARGE)
            if key in base.properties
        }
        return replace(made, metadata=metadata, properties={**addition.properties, **kept})

    return _claimed(DatasetChange(target.uuid, "rebuild", rebuilt, None), target)


def _claimed(change: DatasetChange, target: WriteRequest) -> DatasetChange:
    """Record in the log who builds the dataset, and its name in SQL."""
    builder = target.owner.builder if target.owner else None
    return replace(change, relation=target.name, builder=builder)


def _cube_metadata(write: ValidatedWrite) -> dict[str, object]:
    """Kartothek's metadata of a cube; before there is a seed dataset, the enrichment's own."""
    target, specification = write.target, write.specification
    if specification is not None:
        return specification.metadata(target.dataset)
    return cube_metadata(is_seed=False, dimension_columns=target.dimension_columns)


_MANY_FILES = 100
_REASONS = {
    "duplicate": "{repeat} a cell: each cell ({columns}) may occur only once",
    "null": "{have} no value in {columns}, which is a dimension, partition or index column",
    "invalid": "Values in {columns} are invalid in Arrow, such as texts that are not UTF-8",
    "nan": "{have} NaN in {columns}, which is a partition column",
    "calendar": "{have} a date or time in {columns} outside the years 1 to 9999, or outside a day",
    "path": "{have} a value in {columns} that is too long for a path, which has each value of a "
    "partition column",
    "value": "{have} a value in {columns} that its type, {type}, cannot hold exactly",
}
_FIXES = {
    "duplicate": "Aggregate or filter the rows so that each cell occurs only once, or add a "
    "column that tells the rows apart to dimension_columns.",
    "invalid": "Decode the texts, or store them as binary.",
    "nan": "Filter these rows, or give them another value: NaN has no folder.",
    "calendar": "Filter these rows, or give them another value: null for an infinity, 9999-12-31 "
    "for an end that is not known.",
    "path": "Shorten the values, or partition by a column with short ones. In a path, each byte of "
    "a letter beyond ASCII, a blank or most signs takes three.",
}


def _fill_null(schema: pa.Schema, column: str) -> Remedy:
    """How to give rows without a key one; only of texts and integers is there a usual value."""
    of_class = normalize(schema.field(column).type) if column in schema.names else pa.null()
    if pa.types.is_string(of_class):
        return Remedy("fill_null", column=column, value="'unknown'")
    if pa.types.is_integer(of_class):
        lowest = "-1" if pa.types.is_signed_integer(of_class) else "0"
        return Remedy("fill_null", column=column, value=lowest)
    return Remedy("filter_null", column=column)


def _refusal(write: ValidatedWrite, findings: tuple[DataFinding, ...]) -> Message:
    problems, target = [], write.target
    for item in findings:
        columns = ", ".join(f"`{name}`" for name in item.column.split(", "))
        reason = _REASONS[item.rule].format(
            repeat=counted(item.count, "row repeats", "rows repeat"),
            have=counted(item.count, "row has", "rows have"),
            columns=columns,
            type=item.type,
        )
        fix: str | Remedy = _FIXES.get(item.rule, Remedy("fit_values"))
        if item.rule == "null":
            fix = _fill_null(write.committed, item.column)
        problems.append(WriteProblem(f"{reason}.", fix, item.example, item.error))
    return refusal(target.uuid, problems, "was refused while writing (nothing was committed)")
