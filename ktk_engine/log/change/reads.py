"""What a write was computed from: its commit depends on that.

See docs/design/files-and-commits.md, Computed again means read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ktk_engine.errors import CommitConflictError, KtkError
from ktk_engine.log.state import State, resolve
from ktk_engine.snapshot.snapshot import changed_files


@dataclass(frozen=True)
class Read:
    """A dataset whose newest version a statement has read."""

    state: State  # its scope at that version
    uuid: str

    def is_unchanged(self, now: State) -> bool:
        """Whether a later version of the scope has the same files and columns of the dataset."""
        before, after = self.state.datasets.get(self.uuid), now.datasets.get(self.uuid)
        if before is None or after is None:
            return False
        if (before.entry, before.foreign) == (after.entry, after.foreign):
            return True
        try:
            old, new = self.state.snapshot(self.uuid), now.snapshot(self.uuid)
            files = changed_files(old, new)
        except KtkError:
            return False  # removed by a clean-up, which never removes the newest
        return bool(old.schema == new.schema and not any(part.num_rows for part in files))


@dataclass(frozen=True)
class Reads:
    """The datasets that a write was computed from, at the versions that it read."""

    datasets: tuple[Read, ...] = ()
    # Store, uuid and version of what the statement itself has committed since.
    written: frozenset[tuple[str, str, int]] = frozenset()

    def __bool__(self) -> bool:
        """Whether anything was read that others may change."""
        return bool(self.datasets)

    def of(self, url: str, uuid: str) -> Reads:
        """What was read of one dataset in a store."""
        own = (r for r in self.datasets if r.uuid == uuid and r.state.store.url == url)
        return replace(self, datasets=tuple(own))

    def check_unchanged(self, head: State) -> None:
        """Raise a `CommitConflictError` if others have changed what the write was computed from.

        Datasets in the scope of the commit are compared with `head`, on which the commit is put.
        Others have their own log and are compared with their newest version.
        """
        newest = {(head.store.url, head.scope): head}
        for read in self.datasets:
            store, scope = read.state.store, read.state.scope
            key = (store.url, scope)
            if key not in newest:
                newest[key] = replace(resolve(store, scope), known=read.state.known)
            now = newest[key].datasets.get(read.uuid)
            version = now.entry.version if now is not None and now.entry is not None else 0
            if (store.url, read.uuid, version) in self.written:
                continue
            if not read.is_unchanged(newest[key]):
                raise CommitConflictError(
                    f"Dataset {read.uuid} of {store.url} was changed after this run had read it. "
                    "Nothing was committed. Run it again."
                )


NOTHING_READ = Reads()


def joined_reads(reads: Iterable[Reads]) -> Reads:
    """Unite what several computations have read."""
    known = list(reads)
    datasets = tuple(read for item in known for read in item.datasets)
    return Reads(datasets, frozenset(found for item in known for found in item.written))
