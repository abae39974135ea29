"""What a published form of a dataset is: the record that another engine reads beside the files.

See docs/design/files-and-commits.md, Published forms.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from ktk_engine.log.entry import DatasetEntry
from ktk_engine.log.state import State
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore


class Present(Protocol):
    """What a form's record says now.

    Attributes:
        version: its newest version, -1 if there is none.
        published: the version of ours that it has, 0 if none.
        broken: why it cannot be read; empty if it can.
    """

    @property
    def version(self) -> int:
        """See above."""

    @property
    def published(self) -> int:
        """See above."""

    @property
    def broken(self) -> str:
        """See above."""


@dataclass(frozen=True)
class Wanted:
    """One version of a dataset that a record is to say.

    Attributes:
        store: where it lies.
        snapshot: the dataset.
        entry: where it stands in our log.
        now: the store's time.
        expired_keys: keys that a clean-up is about to delete.
        known: snapshots by key, which need not be read again.
    """

    store: ObjectStore
    snapshot: Snapshot
    entry: DatasetEntry
    now: datetime
    expired_keys: Collection[str] = field(default=(), repr=False)
    known: Mapping[str, Snapshot] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, state: State, uuid: str, expired_keys: Collection[str] = ()) -> Wanted:
        """A dataset as a scope has it; the log has to know it."""
        entry = state.datasets[uuid].entry
        assert entry is not None
        now = state.store.now()
        return cls(state.store, state.snapshot(uuid), entry, now, expired_keys, state.known)

    @property
    def mark(self) -> tuple[int, str]:
        """Version and commit of ours."""
        return self.entry.version, self.entry.commit


class NextVersion(Protocol):
    """The version of a record that leads from what it says to what it is to say."""

    @property
    def version(self) -> int:
        """Its number."""

    def put(self) -> None:
        """Write it; that is when readers see it.

        Raises:
            ObjectExistsError: somebody else has written this version.
        """

    def follows(self) -> bool:
        """Whether what it was built on is still there: somebody may have begun anew."""

    def take_back(self) -> None:
        """Delete it, as it does not follow."""

    def settle(self) -> None:
        """Do what readers can do without: checkpoints, hints, deletion of what is too old."""


class Form(Protocol):
    """A format in which every commit of a dataset is published.

    Attributes:
        name: as configurations say it.
        title: as people say it.
        record: what is written beside the files, and follows the log.
    """

    name: str
    title: str
    record: str

    def folder(self, uuid: str) -> str:
        """Key of the folder with a dataset's record."""

    def is_current(self, wanted: Wanted) -> bool:
        """Whether the newest version is ours, and of this commit; without reading all of it."""

    def read(self, store: ObjectStore, uuid: str) -> Present:
        """Read a record of any writer.

        Raises:
            StoreError: the store could not be read.
        """

    def next_version(self, wanted: Wanted, present: Present) -> NextVersion | None:
        """Give what is to be written; None if the record says that already.

        Raises:
            PublishError: the form cannot say what the dataset holds.
        """

    def check(self, snapshot: Snapshot) -> None:
        """Refuse a dataset that cannot be published as it is.

        Raises:
            PublishError: the form cannot say what it holds, or readers would see other rows.
        """

    def difference(self, wanted: Wanted, present: Present) -> str:
        """How a record of this commit differs from what is committed; empty if it does not.

        Raises:
            PublishError: see `check`.
        """

    def verify_with_library(self, wanted: Wanted) -> str:
        """What another reader finds wrong; empty if nothing, or if none is installed."""

    def delete(self, store: ObjectStore, uuid: str) -> bool:
        """Delete a record. What it begins with goes first, so that no reader sees an old state.

        Returns:
            Whether there was one.
        """
