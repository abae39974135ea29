"""What stays of a dataset's old content when a commit adds rows to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition
from ktk_engine.errors import CommitConflictError, ObjectNotFoundError
from ktk_engine.format.label import folders_of
from ktk_engine.log.entry import Operation
from ktk_engine.plan.overlay import same_partitions
from ktk_engine.plan.plan_dataset import address_partitions
from ktk_engine.snapshot.snapshot import Snapshot, changed_files, concat_files
from ktk_engine.store.interface import ObjectStore
from ktk_engine.write.affected_files import may_hold

Conditions = Sequence[Condition]


@dataclass(frozen=True)
class WriteMode:
    """What stays of a dataset's old content when rows are added."""

    # `append` keeps every file, `partitions` replaces the partitions of the new rows, and `files`
    # replaces named files. `nothing` replaces all files but keeps the columns.
    mode: Literal["append", "partitions", "files", "nothing"]
    replaced: pa.Table | None = None  # for `files`: rows of the dataset's table of files
    # A row that another commit adds meanwhile and that fulfils one of these conjunctions is a
    # conflict.
    reads: tuple[Conditions, ...] = ()
    verb: Operation = "replace"  # of the replacing, in the log

    @property
    def operation(self) -> Operation:
        """The verb in the log."""
        return "append" if self.mode == "append" else self.verb

    def touched(self, addition: Snapshot) -> frozenset[str] | None:
        """Folders of the partitions that are replaced as a whole; None means all."""
        if self.mode == "nothing":
            return None
        if self.mode != "partitions":
            return frozenset()
        return frozenset(label.rpartition("/")[0] for label in addition.labels)

    def removed(self, base: Snapshot, addition: Snapshot) -> pa.Table:
        """The base's files that go: rows of its table of files."""
        if self.mode == "append":
            return base.file_table.schema.empty_table()
        if self.mode == "nothing":
            return base.files
        touched = addition.files if self.mode == "partitions" else self._replaced
        files = base.narrowed_to(touched).files
        if self.mode == "partitions":
            folders = pc.unique(folders_of(addition.files["label"].combine_chunks()))
            return files.filter(pc.is_in(folders_of(files["label"]), value_set=folders))
        return files.filter(pc.is_in(files["label"], value_set=touched["label"].combine_chunks()))

    @property
    def _replaced(self) -> pa.Table:
        nothing = pa.table({"label": pa.array([], pa.string())})
        return nothing if self.replaced is None else self.replaced

    def check_unchanged(
        self, store: ObjectStore, started: Snapshot, base: Snapshot, addition: Snapshot
    ) -> None:
        """Raise a `CommitConflictError` if another commit changed what the rows were computed from.

        `started` is the dataset as this write found it, `base` as it is now.
        """
        if started.schema != base.schema:
            raise _conflict(base, "its columns changed")
        if self.mode != "files" and not self.reads:
            return  # the log's own check is enough
        try:
            gone, came = changed_files(started, base)
        except ObjectNotFoundError as error:
            raise _conflict(base, "a clean-up removed what this one was computed from") from error
        lost = pc.is_in(self._replaced["label"], value_set=gone["label"].combine_chunks())
        if pc.any(lost).as_py():
            raise _conflict(base, "another commit rewrote files that this one rewrites")
        if not came.num_rows:
            return
        new = replace(base, file_table=came)
        if any(may_hold(reads, store, new) for reads in self.reads):
            what = "that this one would replace" if self.mode == "files" else "with its unique keys"
            raise _conflict(base, f"another commit added rows {what}")
        if self.mode != "files":
            return
        if base.dimension_columns and _overlaid(new, self._touched_files(started, addition)):
            raise _conflict(base, "another commit added cells to those that this one rewrites")

    def _touched_files(self, started: Snapshot, addition: Snapshot) -> pa.Table:
        return concat_files([self.removed(started, addition), addition.files])


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
