"""What a write was computed from: its commit depends on that.

See docs/design/files-and-commits.md, Computed again means read again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from ktk_engine.errors import CommitConflictError, KtkError
from ktk_engine.log.state import State, resolve
from ktk_engine.snapshot.snapshot import Snapshot, changed_files
from ktk_engine.store.interface import ObjectStore

# Whether some files of a dataset, given as a snapshot of them alone, may hold a row looked for.
MayHold = Callable[[ObjectStore, Snapshot], bool]


@dataclass(frozen=True)
class Read:
    """A dataset that a statement has read."""

    state: State  # its scope at that version
    uuid: str
    may_hold: MayHold | None = None  # None: every file counts
    # The version that the statement names, which nothing can change; empty for the newest.
    moment: str = ""

    def changed(self, now: State) -> Collection[str]:
        """The dataset if a later version of the scope has other rows or columns to look at."""
        return () if self._is_unchanged(now) else (self.uuid,)

    def _is_unchanged(self, now: State) -> bool:
        before, after = self.state.datasets.get(self.uuid), now.datasets.get(self.uuid)
        if before is None or after is None:
            return False
        if (before.entry, before.foreign) == (after.entry, after.foreign):
            return True
        try:
            old, new = self.state.snapshot(self.uuid), now.snapshot(self.uuid)
            if old.schema != new.schema:
                return False
            gone, came = changed_files(old, new)
            parts = ((self.state, old, gone), (now, new, came))
            return not any(
                files.num_rows and self._counts(state.store, replace(known, file_table=files))
                for state, known, files in parts
            )
        except KtkError:
            return False  # removed by a clean-up, which never removes the newest

    def _counts(self, store: ObjectStore, files: Snapshot) -> bool:
        return self.may_hold is None or self.may_hold(store, files)


def any_dataset(snapshot: Snapshot) -> bool:
    """Let a `Choice` depend on every dataset."""
    return True


@dataclass(frozen=True)
class Choice:
    """A choice among all datasets of a scope by their columns, or by documents for Kartothek."""

    state: State  # the scope
    fits: Callable[[Snapshot], bool]

    def changed(self, now: State) -> Collection[str]:
        """Datasets that fit and were not there yet, or got other columns, or documents."""
        return [uuid for uuid in now.datasets if self._is_other(now, uuid)]

    def _is_other(self, now: State, uuid: str) -> bool:
        before, after = self.state.datasets.get(uuid), now.datasets[uuid]
        if before is not None and (before.entry, before.foreign) == (after.entry, after.foreign):
            return False
        try:
            new = now.snapshot(uuid)
            if before is not None:
                old = self.state.snapshot(uuid)
                if _layout(old) == _layout(new):
                    return False
        except KtkError:
            return True
        return self.fits(new)


def _layout(snapshot: Snapshot) -> tuple[object, ...]:
    return snapshot.schema, snapshot.partition_keys, snapshot.has_documents


@dataclass(frozen=True)
class Reads:
    """What a write was computed from, at the versions that it read."""

    looked_at: tuple[Read | Choice, ...] = ()
    # Store, uuid and version of what the statement itself has committed since.
    written: frozenset[tuple[str, str, int]] = frozenset()

    def __bool__(self) -> bool:
        """Whether anything was read that others may change."""
        return any(not _is_fixed(item) for item in self.looked_at)

    def of(self, url: str, uuid: str) -> Reads:
        """What was read of one dataset in a store."""
        own = (
            item
            for item in self.looked_at
            if isinstance(item, Read) and item.uuid == uuid and item.state.store.url == url
        )
        return replace(self, looked_at=tuple(own))

    def check_unchanged(self, head: State) -> None:
        """Raise a `CommitConflictError` if others have changed what the write was computed from.

        Datasets in the scope of the commit are compared with `head`, on which the commit is put.
        Others have their own log and are compared with their newest version.
        """
        newest = {(head.store.url, head.scope): head}
        for item in self.looked_at:
            if _is_fixed(item):
                continue
            store, scope = item.state.store, item.state.scope
            key = (store.url, scope)
            if key not in newest:
                newest[key] = replace(
                    resolve(store, scope), snapshot_cache=item.state.snapshot_cache
                )
            for uuid in item.changed(newest[key]):
                now = newest[key].datasets.get(uuid)
                version = now.entry.version if now is not None and now.entry is not None else 0
                if (store.url, uuid, version) not in self.written:
                    raise CommitConflictError(
                        f"Dataset {uuid} of {store.url} was changed after this run had read it. "
                        "Nothing was committed. Run it again."
                    )


NOTHING_READ = Reads()


def _is_fixed(item: Read | Choice) -> bool:
    return isinstance(item, Read) and bool(item.moment)


def joined_reads(reads: Iterable[Reads]) -> Reads:
    """Unite what several computations have read."""
    known = list(reads)
    looked_at = tuple(item for reads in known for item in reads.looked_at)
    return Reads(looked_at, frozenset(found for item in known for found in item.written))
