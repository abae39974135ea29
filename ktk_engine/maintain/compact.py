"""Compacts a dataset: small and overlaid files of a partition become few large ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.errors import DataError
from ktk_engine.files import task_values
from ktk_engine.files.footers import FooterCache
from ktk_engine.files.index_place import IndexPlace
from ktk_engine.files.physical_schemas import kept_types, stored_schema
from ktk_engine.files.task_values import SegmentPlace
from ktk_engine.files.write_job import WriteJob
from ktk_engine.files.written_files import WrittenFiles
from ktk_engine.formatting import counted, size
from ktk_engine.gate.gate import check_scope
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.change.change_set import DatasetChange, Rebase
from ktk_engine.log.entry import Operation
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.maintain.compact_indices import compact_indices
from ktk_engine.maintain.compactable import Compaction, said_of_lists
from ktk_engine.progress import Progress, no_progress
from ktk_engine.publish.publish import publish
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.write.present_rows import in_types, present_batches
from ktk_engine.write.rebase import rebased
from ktk_engine.write.rows import Rows, write_parquet

if TYPE_CHECKING:
    from ktk_engine.spark.read.scan import Scanner

# Larger rewrites go to Spark's tasks; smaller ones end before its job would start.
IN_PROCESS_BYTES = 256_000_000


@dataclass(frozen=True)
class Compacted:
    """The result of a compaction."""

    uuid: str
    version: int  # of the dataset's log
    files_before: int  # number of rewritten files
    files: int  # number of new files
    bytes_before: int  # of the rewritten files
    bytes: int  # of the new files
    warning: str = ""  # why old readers may not see it yet
    indices: tuple[str, ...] = ()  # columns whose segments were merged
    scattered: bool = False  # the list of files was rewritten

    def __str__(self) -> str:
        if not self.files_before:
            return f"merged {said_of_lists(self.indices, self.scattered)}"
        before = f"{counted(self.files_before, 'file')} ({size(self.bytes_before)})"
        return f"{before} became {self.files:,} ({size(self.bytes)})"


def compact(
    compaction: Compaction,
    history: Mapping[str, str] | None = None,
    compression: str = "zstd",
    scanner: Callable[[], Scanner] | None = None,
    progress: Progress = no_progress,
) -> Compacted:
    """Rewrite the files of a needed compaction so that fewer hold the same rows, in one commit.

    The old files stay for readers and history until a clean-up. Without a scanner, rewrites of any
    size stream through this process. Raises a `CommitConflictError` if another run changed the
    partitions meanwhile, and a `LocalEngineError` if a piece does not fit into memory.
    """
    state, base = compaction.state, compaction.snapshot
    in_spark = scanner is not None and compaction.bytes > IN_PROCESS_BYTES
    operation, said = f"compact {base.uuid}", history or {}
    with ScopeTransaction(state, operation, said, check_scope, publish) as changing:
        changing.announce(base.uuid)
        commit_id = changing.commit_id
        folder = state.scope.segment_folder(commit_id)
        place = IndexPlace(state.store, base.uuid, commit_id, folder)
        merged = compact_indices(place, base, compaction.indices, compaction.files)

        files, extend = compaction.files, None
        if files.num_rows:
            job = _job(compaction, commit_id, compression, in_spark)
            rows = _rows(compaction, job.schema, scanner if in_spark else None, progress)
            report = _written(rows, job)
            extend = _extension(compaction, place, report)
            files = report.files

        def rebase(known: Snapshot | None, attempt: int) -> Snapshot:
            found = merged(known, attempt)
            if extend is not None:
                found = extend(found, attempt)
            # A whole table is stored in new segments, sorted by partition.
            anew = compaction.scattered and attempt == 0
            return replace(found, file_table=found.files) if anew else found

        # Without other files it is compatible with any commit.
        recorded: Operation = "compact" if extend is not None else "index"
        changing.change(DatasetChange(base.uuid, recorded, rebase, frozenset()))
        done = changing.commit()
    return Compacted(
        base.uuid,
        done.entry.version,
        compaction.files.num_rows,
        files.num_rows,
        compaction.bytes,
        int(pc.sum(files["bytes"]).as_py() or 0),
        done.warning,
        compaction.indices,
        compaction.scattered,
    )


def _written(rows: Rows, job: WriteJob) -> WrittenFiles:
    report = write_parquet(rows, job)
    if report.findings:
        finding = report.findings[0]
        broken = counted(finding.count, "row breaks", "rows break")
        raise DataError(
            f"Dataset {job.uuid} cannot be compacted: {broken} the "
            f"rule `{finding.rule}` in {finding.column}, for instance {finding.example}. "
            "Nothing was committed. Rebuild it.",
            report.findings,
        )
    return report


def _rows(
    compaction: Compaction,
    schema: pa.Schema,
    scanner: Callable[[], Scanner] | None,
    progress: Progress,
) -> Rows:
    """The rows that readers see in the files."""
    state, base = compaction.state, compaction.snapshot
    if scanner is not None:
        from ktk_engine.spark.read.plan_frame import rows_of  # loads PySpark

        return rows_of(scanner(), base, compaction.files, state.version)
    batches = present_batches(state, replace(base, file_table=compaction.files), FooterCache())
    return in_types(_told(batches, compaction.rows, progress), schema)


def _told(
    batches: Iterable[pa.RecordBatch], total: int, progress: Progress
) -> Iterator[pa.RecordBatch]:
    """Report progress by batches; they lack overlaid rows, so the last report is the total."""
    done = 0
    for batch in batches:
        yield batch
        done += batch.num_rows
        progress(min(done, total), total)
    progress(total, total)


def _job(compaction: Compaction, commit_id: str, compression: str, in_spark: bool) -> WriteJob:
    """Lay the rows out as they are, in files of the target size."""
    base, store = compaction.snapshot, compaction.state.store
    dealt = in_spark and not base.partition_keys
    row_group_rows = min(WriteJob.row_group_rows, compaction.rows_per_file)
    schema = stored_schema(store, FooterCache(), base, compaction.files)
    return WriteJob(
        store=store,
        uuid=base.uuid,
        commit=commit_id,
        schema=schema,
        kept_types=kept_types(base, compaction.files, schema),
        partition_keys=base.partition_keys,
        cell_columns=tuple(c for c in base.dimension_columns if c not in base.partition_keys),
        clustered_by=base.clustered_by,
        index_columns=tuple(sorted(base.with_index)),
        segments=SegmentPlace(
            compaction.state.scope.segment_folder(commit_id), base.uuid, task_values.REPORTED_PAIRS
        ),
        compression=compression,
        row_group_rows=row_group_rows,
        file_rows=None if dealt else compaction.rows_per_file // row_group_rows * row_group_rows,
        tasks=math.ceil(compaction.bytes / compaction.target_bytes) if dealt else None,
    )


def _extension(compaction: Compaction, place: IndexPlace, written: WrittenFiles) -> Rebase:
    """The change that replaces the old files by the new ones."""
    base = compaction.snapshot
    addition = Snapshot(
        uuid=base.uuid,
        schema=base.schema,
        partition_keys=base.partition_keys,
        file_table=written.files,
        physical_schemas=written.schemas,
    )
    target = WriteRequest(base.uuid, mode="files", replaced=compaction.files, verb="compact")
    return rebased(target, base, addition, place, written)
