"""Writes the rows of a checked write as files, without committing them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.cube.cube_metadata import cube_metadata
from ktk_engine.cube.user_metadata import is_of_a_build
from ktk_engine.errors import DataError
from ktk_engine.files import task_values
from ktk_engine.files.index_place import IndexPlace, pairs_of_report
from ktk_engine.files.physical_schemas import kept_types
from ktk_engine.files.task_values import SegmentPlace
from ktk_engine.files.write_job import WriteJob
from ktk_engine.files.write_report import DataFinding, WriteReport
from ktk_engine.format.comments import Comments, with_comments
from ktk_engine.formatting import counted
from ktk_engine.gate.constraint import CONSTRAINTS
from ktk_engine.gate.gate import ValidatedWrite
from ktk_engine.gate.target import Target
from ktk_engine.log.change.change_set import DatasetChange
from ktk_engine.log.commit import Committed, role_of
from ktk_engine.messages import Message, Remedy
from ktk_engine.snapshot.column_index import ColumnIndex, with_indices
from ktk_engine.snapshot.snapshot import LARGE, PUBLISH, WITHOUT_DOCUMENTS, Snapshot
from ktk_engine.types.refusal import WriteProblem, refusal
from ktk_engine.types.type_class import normalize
from ktk_engine.write.appended_files import AppendedFiles
from ktk_engine.write.checked_write import CheckedWrite
from ktk_engine.write.rows import ArrowRows, Rows, write_parquet
from ktk_engine.write.write_result import RowChanges, WriteResult


@dataclass(frozen=True)
class StagedRows:
    """Rows that are written as files, and what their commit changes."""

    write: CheckedWrite  # with what the commit depends on
    addition: Snapshot  # the new files, as a dataset of their own
    change: DatasetChange
    notes: tuple[str, ...]  # for people

    @property
    def changes(self) -> tuple[DatasetChange, ...]:
        """Changes of the dataset, and of others that leave the cube in the same commit."""
        scope, known = self.write.target.scope, self.write.state.snapshots_by_id()
        leaving = (
            DatasetChange(scope.uuid_of(name), "remove", None, role=role_of(scope, known[name]))
            for name in self.write.gate.leaving
        )
        return (self.change, *leaving)

    @property
    def reason(self) -> str:
        """Why other datasets are changed as well; empty if none is."""
        leaving = ", ".join(self.write.gate.leaving)
        return f"cascade: {leaving} no longer fit" if leaving else ""

    def result(self, done: Committed) -> WriteResult:
        """What the write did, once it is committed."""
        rows = self.addition.rows or 0
        return WriteResult(
            self.write.target.uuid,
            done.entry.version,
            rows,
            self.addition.files.num_rows,
            self.addition.bytes or 0,
            done.warning,
            self.notes,
            RowChanges(rows, deleted=_rows_gone(self.write, self.addition)),
            leaving=self.write.gate.leaving,
        )


def stage_rows(write: CheckedWrite, rows: Rows, commit_id: str, step: int = 0) -> StagedRows:
    """Write rows as new files, which readers do not see before the commit.

    `check_constraints` has run already. `commit_id` is part of every file name, and `step` counts
    the commit's earlier writes to this dataset. Raises a `DataError` if rows break a rule.
    """
    job = _job(write, commit_id, step)
    report = write_parquet(rows, job)
    if report.findings:
        raise DataError(_refusal(write, report.findings), report.findings)
    addition = _describe(write, job, report)
    write = _verified(write, rows, addition)
    notes = (*write.gate.notes, *_index_notes(job, write.base), write.claimed)
    notes = (*notes, _note_of_many_files(write.target, addition))
    change = _change(write, addition, report, job)
    return StagedRows(write, addition, change, tuple(filter(None, notes)))


def _note_of_many_files(target: Target, addition: Snapshot) -> str:
    """Say that a partition column has a value for nearly each row; empty if none has."""
    files, rows = addition.files.num_rows, addition.rows
    if not target.partition_by or files < _MANY_FILES or rows is None or rows > 10 * files:
        return ""
    columns = ", ".join(target.partition_by)
    return (
        f"{files:,} files for {rows:,} rows: partition_by ({columns}) makes a file for each value. "
        "An index finds single values in few files"
    )


def _verified(write: CheckedWrite, rows: Rows, addition: Snapshot) -> CheckedWrite:
    """Verify the constraints on the written files; the commit depends on what was read for it."""
    constraints, mode, base = write.target.constraints, write.mode, write.base
    if not constraints or isinstance(rows, ArrowRows):
        return write  # a table's rows are not in Spark: see `check_constraints`
    from ktk_engine.write.verify_constraints import verify_constraints

    kept = None
    if mode is not None and base is not None:
        gone = mode.removed(base, addition)
        kept = base.changed(gone, gone.slice(0, 0))
    reads = verify_constraints(write.state.store, rows, constraints, addition, kept)
    if mode is None:
        return write
    return replace(write, mode=replace(mode, reads=(*mode.reads, *reads)))


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


def _rows_gone(write: CheckedWrite, addition: Snapshot) -> int:
    """The number of rows in replaced files, if known: other writers' files do not tell it."""
    mode, base = write.mode, write.base
    if mode is None or base is None:
        return 0
    return int(pc.sum(mode.removed(base, addition)["rows"]).as_py() or 0)


def _job(write: CheckedWrite, commit_id: str, step: int) -> WriteJob:
    target, cells = write.target, write.target.dimension_columns
    required = dict.fromkeys([*target.partition_by, *cells, *write.gate.indexes])
    return WriteJob(
        store=write.state.store,
        uuid=target.uuid,
        commit=commit_id,
        schema=_physical(target, write.gate),
        kept_types=_kept_types(write),
        partition_keys=target.partition_by,
        cell_columns=tuple(c for c in cells if c not in target.partition_by),
        clustered_by=target.clustered_by,
        # A missing value has no form in the path of a file.
        required_columns=tuple(required) if target.cube else target.partition_by,
        index_columns=write.gate.indexes,
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


def _physical(target: Target, gate: ValidatedWrite) -> pa.Schema:
    """Payload keeps its width; partition columns get their class's container."""
    return pa.schema(
        [
            gate.committed.field(f.name) if f.name in target.partition_by else f
            for f in gate.physical
        ]
    )


def _kept_types(write: CheckedWrite) -> Mapping[str, pa.DataType]:
    """The types of columns in files that stay, where those of the rows are others."""
    mode, base = write.mode, write.base
    if mode is None or base is None or mode.mode == "nothing":
        return {}
    gone = mode.replaced if mode.mode == "files" else None
    return kept_types(base, gone, _physical(write.target, write.gate))


def _describe(write: CheckedWrite, job: WriteJob, report: WriteReport) -> Snapshot:
    """Describe the new files as a dataset of their own, without indexes."""
    target, now = write.target, job.store.now()
    metadata = {**target.metadata, "creation_time": now.replace(tzinfo=None).isoformat()}
    if target.cube:
        metadata |= _cube_metadata(target, write.gate)
    return Snapshot(
        uuid=target.uuid,
        schema=write.gate.committed,
        partition_keys=target.partition_by,
        file_table=report.files,
        metadata=metadata,
        physical_schemas=report.schemas,
        properties={
            "dimension_columns": list(target.dimension_columns),
            "clustered_by": list(target.clustered_by),
            CONSTRAINTS: [item.as_dict() for item in target.constraints],
        },
    )


def _change(
    write: CheckedWrite, addition: Snapshot, report: WriteReport, job: WriteJob
) -> DatasetChange:
    """Replace all of the dataset, or add to what is there."""
    target, mode, base = write.target, write.mode, write.base
    folder = write.state.scope.segment_folder(job.commit)
    place = IndexPlace(job.store, target.uuid, job.name, folder)
    if mode is not None and base is not None:
        # The configuration cannot name a column that the new rows lack: its index stays.
        others = [name for name in base.with_index if name not in job.schema.names]
        indexes = (*job.index_columns, *others)
        extend = AppendedFiles(place, mode, base, addition, report, indexes, target.metadata)
        touched = mode.touched(addition)
        change = DatasetChange(target.uuid, mode.operation, extend, touched, target.role)
        return _claimed(change, target)
    large = base.large_columns if base is not None else ()
    built = with_indices(
        addition,
        {name: _new_index(place, name, addition, report, large) for name in report.index_values},
    )

    def rebuilt(base: Snapshot | None, attempt: int) -> Snapshot:
        """Metadata of users and other programs belongs to the dataset, so it survives new rows."""
        if base is None:
            return built
        noted = {key: value for key, value in base.metadata.items() if not is_of_a_build(key)}
        known, said = base.comments.only(built.schema.names), built.comments
        texts = {**known.columns, **said.columns}
        comments = Comments(said.relation or known.relation, texts)
        metadata = with_comments({**noted, **built.metadata}, comments)
        kept = {
            key: base.properties[key]
            for key in ("table", PUBLISH, WITHOUT_DOCUMENTS, LARGE)
            if key in base.properties
        }
        return replace(built, metadata=metadata, properties={**built.properties, **kept})

    return _claimed(DatasetChange(target.uuid, "rebuild", rebuilt, None, target.role), target)


def _new_index(
    place: IndexPlace, name: str, addition: Snapshot, report: WriteReport, large: Collection[str]
) -> ColumnIndex:
    """The index on a column of new files alone."""
    t, segments = addition.schema.field(name).type, report.index_segments.get(name)
    pairs = [pairs_of_report(*report.index_values[name], addition.files)]
    if segments is None:
        return place.build(name, t, pairs, large=name in large)
    return ColumnIndex(segments=place.in_tiers((*segments, *place.segments(t, pairs))))


def _claimed(change: DatasetChange, target: Target) -> DatasetChange:
    """Record in the log who builds the dataset, and its name in SQL."""
    builder = target.owner.builder if target.owner else None
    return replace(change, relation=target.name, builder=builder)


def _cube_metadata(target: Target, gate: ValidatedWrite) -> dict[str, object]:
    """Kartothek's metadata of a cube; before there is a seed dataset, the enrichment's own."""
    if gate.specification is not None:
        return gate.specification.metadata(target.dataset)
    return cube_metadata(is_seed=False, dimension_columns=target.dimension_columns)


_MANY_FILES = 100
_REASONS = {
    "duplicate": "{repeat} a cell: each cell ({columns}) may occur only once",
    "null": "{have} no value in {columns}, which is a dimension, partition or index column",
    "invalid": "Values in {columns} are invalid in Arrow, such as texts that are not UTF-8",
    "nan": "{have} NaN in {columns}, which is a partition column",
    "calendar": "{have} a date or time in {columns} outside of the years 1 to 9999 or of a day",
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


def _refusal(write: CheckedWrite, findings: tuple[DataFinding, ...]) -> Message:
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
            fix = _fill_null(write.gate.committed, item.column)
        problems.append(WriteProblem(f"{reason}.", fix, item.example, item.error))
    return refusal(target.uuid, problems, "was refused while writing (nothing was committed)")
