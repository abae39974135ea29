"""What stays of a dataset's old content when a commit adds rows to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import Condition
from ktk_engine.errors import CommitConflictError, ObjectNotFoundError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.format.label import folders_of
from ktk_engine.log.entry import Operation
from ktk_engine.plan.overlay import same_partitions
from ktk_engine.plan.plan_dataset import address_partitions
from ktk_engine.plan.prune import prune
from ktk_engine.snapshot.snapshot import Snapshot, changed_files, concat_files
from ktk_engine.store.interface import ObjectStore

Conditions = Sequence[Condition]


@dataclass(frozen=True)
class WriteMode:
    """What stays of a dataset's old content when rows are added.

    Attributes:
        mode: `append` keeps every file; `partitions` replaces exactly those that the new rows
            have; `files` replaces the named ones; `nothing` replaces all, of a dataset that keeps
            its columns.
        replaced: the files that go, for `files`: rows of the dataset's table of files.
        reads: each is a conjunction; anyone who commits a row that fulfils one of
            them meanwhile has changed what this write was computed from.
        verb: what the log calls the replacing.
    """

    mode: Literal["append", "partitions", "files", "nothing"]
    replaced: pa.Table | None = None
    reads: tuple[Conditions, ...] = ()
    verb: Operation = "replace"

    @property
    def operation(self) -> Operation:
        """The verb in the log."""
        return "append" if self.mode == "append" else self.verb

    def touched(self, addition: Snapshot) -> frozenset[str]:
        """Folders of the partitions that are replaced as a whole."""
        if self.mode != "partitions":
            return frozenset()
        return frozenset(label.rpartition("/")[0] for label in addition.labels)

    def removed(self, base: Snapshot, addition: Snapshot) -> pa.Table:
        """Which of the base's files go: rows of its table of files."""
        if self.mode == "append":
            return base.file_table.schema.empty_table()
        if self.mode == "nothing":
            return base.files
        touched = addition.files if self.mode == "partitions" else self._replaced
        files = base.narrowed_to(touched).files
        if self.mode == "partitions":
            folders = pa.array(sorted(self.touched(addition)), pa.string())
            return files.filter(pc.is_in(folders_of(files["label"]), value_set=folders))
        return files.filter(pc.is_in(files["label"], value_set=touched["label"].combine_chunks()))

    @property
    def _replaced(self) -> pa.Table:
        nothing = pa.table({"label": pa.array([], pa.string())})
        return nothing if self.replaced is None else self.replaced

    def check_unchanged(
        self, store: ObjectStore, started: Snapshot, base: Snapshot, addition: Snapshot
    ) -> None:
        """Refuse to go on if another commit changed what this write was computed from.

        Args:
            store: where the dataset lives.
            started: the dataset as this write found it.
            base: the dataset as it is now.
            addition: the new files, as a dataset of their own.

        Raises:
            CommitConflictError: the rows have to be computed again.
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
        if any(
            prune(store, new, reads, None, MetadataCache()).files.num_rows for reads in self.reads
        ):
            what = "that this one would replace" if self.mode == "files" else "with its unique keys"
            raise _conflict(base, f"another commit added rows {what}")
        if self.mode != "files":
            return
        if base.dimension_columns and _overlaid(new, self._touched_files(started, addition)):
            raise _conflict(base, "another commit added cells beside those that this one rewrites")

    def _touched_files(self, started: Snapshot, addition: Snapshot) -> pa.Table:
        return concat_files([self.removed(started, addition), addition.files])


def _overlaid(new: Snapshot, touched: pa.Table) -> bool:
    """Whether files lie in a partition of touched ones; their order would decide on cells."""
    both = replace(new, file_table=concat_files([new.files, touched]))
    ours = pa.array([False] * new.files.num_rows + [True] * touched.num_rows)
    shared = same_partitions(both, ours, address_partitions(new))
    return bool(pc.any(shared.slice(0, new.files.num_rows)).as_py())


def _conflict(base: Snapshot, reason: str) -> CommitConflictError:
    return CommitConflictError(
        f"Dataset {base.uuid} was changed while this run wrote to it: {reason}. Nothing was "
        "committed. Run it again."
    )
