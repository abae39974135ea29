"""Rebuilds a dataset from a Spark DataFrame or an Arrow table, as one commit."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.cube.cube_metadata import cube_metadata, is_cube_key
from ktk_engine.errors import ConfigurationError, DataError
from ktk_engine.files.file_writer import WriteJob
from ktk_engine.files.stored_index import put_index
from ktk_engine.files.write_report import DataFinding, WriteReport
from ktk_engine.files.write_table import write_table
from ktk_engine.format.comments import with_comments
from ktk_engine.format.dataset_key import index_key
from ktk_engine.format.index_file import build_index
from ktk_engine.format.stamp import BASE_KEY
from ktk_engine.formatting import counted, size
from ktk_engine.gate.constraint import CONSTRAINTS
from ktk_engine.gate.gate import CubeCheck, GateResult, check_configured, pass_gate
from ktk_engine.gate.target import Target
from ktk_engine.log.commit import Committed, DatasetChange, Transaction, commit
from ktk_engine.log.snapshot import Bucketing, Snapshot
from ktk_engine.log.state import State, resolve
from ktk_engine.log.write import Write
from ktk_engine.spark.arrow_types import arrow_schema
from ktk_engine.spark.write.write_frame import bucketing_of, write_frame
from ktk_engine.store.interface import ObjectStore
from ktk_engine.write.claim import check_claim
from ktk_engine.write.data_write import data_write
from ktk_engine.write.extension import Extension
from ktk_engine.write.retained import Retained
from ktk_engine.write.row_changes import RowChanges
from ktk_engine.write.verify_constraints import check_constraints, verify_constraints

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Written:
    """The outcome of a write.

    Attributes:
        uuid: the dataset.
        version: version of its log.
        rows: stored rows.
        files: number of data files.
        bytes: their size in bytes.
        warning: why old readers may not see it yet; empty if they do.
        notes: what else changed: columns that are new or left out, enrichments taken out.
        changes: what it did to rows.
    """

    uuid: str
    version: int
    rows: int
    files: int
    bytes: int
    warning: str = ""
    notes: tuple[str, ...] = ()
    changes: RowChanges = field(default_factory=RowChanges)

    def __str__(self) -> str:
        rows = str(self.changes) if self.changes.deleted else counted(self.rows, "row")
        return self.remarked(f"{rows}, {counted(self.files, 'file')}, {size(self.bytes)}")

    def remarked(self, text: str) -> str:
        """A message with the notes and the warning after it."""
        text = "; ".join([text, *self.notes])
        return f"{text} ({self.warning})" if self.warning else text


def build(
    store: ObjectStore,
    frame: DataFrame | pa.Table,
    target: Target,
    history: Mapping[str, str] | None = None,
    full_refresh: bool = False,
    built_by: Mapping[str, str] | None = None,
    retained: Retained | None = None,
    state: State | None = None,
) -> Written:
    """Write a frame as the content of a dataset, or add its rows to what is there.

    Readers keep the version they have; no old file is touched. If anything is refused, nothing
    is committed and every file of this write is removed again.

    Args:
        store: where to write.
        frame: the rows; columns by name. A table is written in this process, without a JVM.
        target: the dataset and its layout.
        history: what the log says of this commit, for people.
        full_refresh: column classes may change.
        built_by: dataset id -> the dbt model that builds it, for messages; None if unknown.
        retained: what stays of the old content; None, or a dataset that does not exist yet,
            builds it anew.
        state: what the rows were computed from, so that a commit since then is a conflict; None
            means that they do not depend on the dataset.

    Raises:
        TypeClassError: columns break the rules of type classes; nothing was written.
        DataError: rows break a rule; nothing was committed.
        ConfigurationError: the configuration does not fit the frame.
        ConsistencyError: the cube's datasets would not fit together.
        CommitConflictError: another run changed the same dataset meanwhile.
        VersionGoneError: a clean-up removed what the rows were computed from.
    """
    state = state or resolve(store, target.scope)
    datasets = {target.scope.dataset_id(uuid): item for uuid, item in state.snapshots().items()}
    local = isinstance(frame, pa.Table)
    schema = frame.schema if local else arrow_schema(frame.schema)
    base = datasets.get(target.dataset) if retained else None
    check_configured(target, schema)
    claimed = check_claim(target, state, base is not None, full_refresh)
    passed = pass_gate(target, schema, datasets, full_refresh, built_by, base is not None)
    _check_clustering(target, passed.committed.names)
    if target.constraints:
        check_constraints(target.constraints, frame)
    write = Write()
    job = _job(store, target, passed, write.commit, buckets=not local)
    buckets = _bucket_count(target, datasets, base)
    if not (job.buckets or local) and retained is not None and retained.mode == "files":
        # Each empty task starts a Python worker for nothing.
        parallel = frame.sparkSession.sparkContext.defaultParallelism
        buckets = min(buckets, max(len(retained.replaced), parallel))
    with state.reading(), data_write(store, target.uuid, write, f"build {target.uuid}"):
        report = write_table(frame, job) if local else write_frame(frame, job, buckets)
        if report.findings:
            raise DataError(_refusal(target, report.findings), report.findings)
        snapshot = _describe(store, target, passed, job, report, bucketing_of(job, buckets))
        retained = _verified(store, frame, target, snapshot, retained, base)
        change = _change(store, target, snapshot, report, job, retained, base)
        done = _commit(state, target, change, passed.leaving, write, history or {})
    return Written(
        target.uuid,
        done.entry.version,
        snapshot.rows or 0,
        snapshot.files.num_rows,
        snapshot.bytes or 0,
        done.warning,
        tuple(filter(None, (*passed.notes, *_index_notes(job, base), claimed))),
        RowChanges(snapshot.rows or 0, deleted=_rows_gone(retained, base, snapshot)),
    )


def _check_clustering(target: Target, columns: Sequence[str]) -> None:
    unknown = [name for name in target.clustered_by if name not in columns]
    if unknown:
        raise ConfigurationError(
            f"Dataset {target.uuid}: clustered_by names {', '.join(unknown)}, which the model "
            f"lacks. It has: {', '.join(columns)}. Nothing was written."
        )


def _verified(
    store: ObjectStore,
    frame: DataFrame | pa.Table,
    target: Target,
    addition: Snapshot,
    retained: Retained | None,
    base: Snapshot | None,
) -> Retained | None:
    """Verify the constraints on what was written; the commit depends on what that has read."""
    if not target.constraints or isinstance(frame, pa.Table):
        return retained  # of a table there are no rows: `check_constraints`
    kept = None
    if retained is not None and base is not None:
        kept = base.files.filter(pc.invert(retained.removed(base, addition)))
    reads = verify_constraints(store, frame, target.constraints, addition, base, kept)
    return retained and replace(retained, reads=(*retained.reads, *reads))


def _index_notes(job: WriteJob, base: Snapshot | None) -> list[str]:
    """What became of the indices of a dataset that keeps files."""
    if base is None:
        return []
    known, wanted = set(base.indices), set(job.index_columns)
    dropped = (known - wanted) & set(job.schema.names)
    return [
        *(f"index on {name} built" for name in sorted(wanted - known)),
        *(f"index on {name} dropped" for name in sorted(dropped)),
    ]


def _rows_gone(retained: Retained | None, base: Snapshot | None, addition: Snapshot) -> int:
    """How many stored rows the replaced files had; files of other writers do not say it."""
    if retained is None or base is None:
        return 0
    return int(pc.sum(base.files["rows"].filter(retained.removed(base, addition))).as_py() or 0)


def _job(
    store: ObjectStore, target: Target, passed: GateResult, commit_id: str, buckets: bool
) -> WriteJob:
    cells = target.dimension_columns
    required = dict.fromkeys([*target.partition_by, *cells, *passed.indexes])
    return WriteJob(
        store=store,
        uuid=target.uuid,
        commit=commit_id,
        schema=_physical(target, passed),
        partition_keys=target.partition_by,
        cell_columns=tuple(c for c in cells if c not in target.partition_by),
        clustered_by=target.clustered_by,
        # The path of a file has no form for a missing value.
        required_columns=tuple(required) if target.cube else target.partition_by,
        index_columns=passed.indexes,
        buckets=buckets and bool(target.cube and target.partition_by),
        compression=target.compression,
        row_group_rows=target.row_group_rows,
    )


def _physical(target: Target, passed: GateResult) -> pa.Schema:
    """Payload keeps its width; partition columns take their class's container."""
    return pa.schema(
        [
            passed.committed.field(f.name) if f.name in target.partition_by else f
            for f in passed.physical
        ]
    )


def _bucket_count(target: Target, datasets: Mapping[str, Snapshot], base: Snapshot | None) -> int:
    """The number of buckets that files which stay have, or else those of the cube.

    Joins without an exchange need the same everywhere.
    """
    if base is not None and base.bucketing is not None:
        return base.bucketing.count
    for item in datasets.values():
        if item.bucketing is not None and item.uuid != target.uuid:
            return item.bucketing.count
    return target.buckets


def _describe(
    store: ObjectStore,
    target: Target,
    passed: GateResult,
    job: WriteJob,
    report: WriteReport,
    bucketing: Bucketing | None,
) -> Snapshot:
    """Describe the new files as a dataset of their own, without indices."""
    now = store.now()
    metadata: dict[str, object] = {"creation_time": now.replace(tzinfo=None).isoformat()}
    if target.cube:
        metadata |= _cube_metadata(target, passed)
    data = [field for field in job.schema if field.name not in target.partition_by]
    return Snapshot(
        uuid=target.uuid,
        schema=passed.committed,
        partition_keys=target.partition_by,
        files=report.files,
        metadata=metadata,
        physical_schemas=(pa.schema(data),),
        bucketing=bucketing,
        properties={
            "dimension_columns": list(target.dimension_columns),
            "clustered_by": list(target.clustered_by),
            CONSTRAINTS: [item.as_dict() for item in target.constraints],
        },
    )


def _change(
    store: ObjectStore,
    target: Target,
    snapshot: Snapshot,
    report: WriteReport,
    job: WriteJob,
    retained: Retained | None,
    base: Snapshot | None,
) -> DatasetChange:
    """What the commit does to the dataset: all of it anew, or on top of what is there."""
    if retained is not None and base is not None:
        # A column that the new rows lack cannot be configured: its index stays.
        others = [name for name in base.indices if name not in job.schema.names]
        indexes = (*job.index_columns, *others)
        values = report.index_values
        extend = Extension(store, retained, base, snapshot, values, job.commit, indexes)
        touched = retained.touched(snapshot)
        change = DatasetChange(target.uuid, retained.operation, extend, touched, target.role)
        return _claimed(change, target)
    now = store.now()
    indices, digests = {}, {}
    for name, (values, labels) in report.index_values.items():
        key = index_key(target.uuid, name, now, job.commit)
        digests[key] = put_index(store, key, name, build_index(values, labels))
        indices[name] = key
    built = replace(snapshot, indices=indices, index_digests=digests)

    def rebuilt(base: Snapshot | None, attempt: int) -> Snapshot:
        """What people and other programs noted belongs to the dataset, not to its rows."""
        if base is None:
            return built
        noted = {key: value for key, value in base.metadata.items() if not _is_of_a_build(key)}
        comments = base.comments.only(built.schema.names)
        metadata = with_comments({**noted, **built.metadata}, comments)
        kept = {key: base.properties[key] for key in ("table",) if key in base.properties}
        return replace(built, metadata=metadata, properties={**built.properties, **kept})

    return _claimed(DatasetChange(target.uuid, "rebuild", rebuilt, None, target.role), target)


def _claimed(change: DatasetChange, target: Target) -> DatasetChange:
    """Let the log say who builds the dataset, and by which name SQL knows it."""
    builder = target.claimant.builder if target.claimant else None
    return replace(change, relation=target.name, builder=builder)


def _is_of_a_build(key: str) -> bool:
    """Whether an entry of a document's metadata says how, when or as what it was built."""
    return key in ("creation_time", BASE_KEY) or is_cube_key(key)


def _cube_metadata(target: Target, passed: GateResult) -> dict[str, object]:
    """Kartothek's marks of a cube; before there is a seed, what the enrichment says itself."""
    if passed.specification is not None:
        return passed.specification.metadata(target.dataset)
    return cube_metadata(is_seed=False, dimension_columns=target.dimension_columns)


def _commit(
    state: State,
    target: Target,
    change: DatasetChange,
    leaving: tuple[str, ...],
    write: Write,
    history: Mapping[str, str],
) -> Committed:
    removals = [
        DatasetChange(target.scope.uuid_of(name), "remove", None, role="enrichment")
        for name in leaving
    ]
    if leaving:
        history = {"reason": f"cascade: {', '.join(leaving)} no longer fit", **history}
    transaction = Transaction(write, (change, *removals), CubeCheck(target.cube), history)
    return commit(state, transaction)


_REASONS = {
    "duplicate": "{repeat} a cell, which {columns} must address uniquely",
    "null": "{have} no value in {columns}, which is a dimension, partition or index column",
    "value": "{have} a value in {columns} that its type, {type}, cannot hold exactly",
}
_FIXES = {
    "duplicate": "Aggregate or filter the model so that each cell occurs only once, or add a "
    "column that tells the rows apart to dimension_columns.",
    "null": "Filter these rows, or give them a value: coalesce({columns}, 'unknown').",
    "value": "Cast, round or filter the column in the model, or declare a wider data_type in its "
    "YAML.",
}


def _refusal(target: Target, findings: tuple[DataFinding, ...]) -> str:
    lines = [f"Dataset {target.uuid} was refused while writing (nothing was committed):"]
    for item in findings:
        columns = ", ".join(f"`{name}`" for name in item.column.split(", "))
        reason = _REASONS[item.rule].format(
            repeat=counted(item.count, "row repeats", "rows repeat"),
            have=counted(item.count, "row has", "rows have"),
            columns=columns,
            type=item.type,
        )
        lines.append(f"- {reason}.")
        if item.example:
            lines.append(f"  Example: {item.example}")
        if item.error:
            lines.append(f"  Arrow says: {item.error}")
        lines.append(f"  Fix: {_FIXES[item.rule].format(columns=item.column)}")
    return "\n".join(lines)
