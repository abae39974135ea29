"""The interface of a published form: the record of a dataset that another engine reads.

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
    """What a form's record says now."""

    @property
    def version(self) -> int:
        """Its newest version; -1 if there is none."""

    @property
    def published(self) -> int:
        """The version of the dataset that it has; 0 if none."""

    @property
    def broken(self) -> str:
        """Why it cannot be read; empty if it can."""


@dataclass(frozen=True)
class Wanted:
    """One version of a dataset that a record has to describe."""

    store: ObjectStore
    snapshot: Snapshot
    entry: DatasetEntry
    now: datetime  # the store's time
    # a clean-up is about to delete them
    expired_keys: Collection[str] = field(default=(), repr=False)
    # snapshots by key, which need not be read again
    snapshot_cache: Mapping[str, Snapshot] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, state: State, uuid: str, expired_keys: Collection[str] = ()) -> Wanted:
        """Describe a dataset that the log of a scope knows."""
        entry = state.datasets[uuid].entry
        assert entry is not None
        now = state.store.now()
        return cls(
            state.store, state.snapshot(uuid), entry, now, expired_keys, state.snapshot_cache
        )

    @property
    def mark(self) -> tuple[int, str]:
        """Version and commit of the dataset."""
        return self.entry.version, self.entry.commit


class NextVersion(Protocol):
    """The version of a record that leads from what it says to what it has to say."""

    @property
    def version(self) -> int:
        """Its number."""

    @property
    def note(self) -> str:
        """What people should know about the change, when it is made; empty if nothing."""

    def put(self) -> None:
        """Write the version, which makes it visible; raises an `ObjectExistsError` if it exists."""

    def follows(self) -> bool:
        """Whether the version before is still there: another writer may have started again."""

    def take_back(self) -> None:
        """Delete the version, as it does not follow."""

    def settle(self) -> None:
        """Do what readers do not need: write checkpoints and hints, delete what is too old."""


class Form(Protocol):
    """A format in which every commit of a dataset is published."""

    name: str  # in configurations
    title: str  # in messages
    record: str  # what is written next to the files, and follows the log

    def folder(self, uuid: str) -> str:
        """Key of the folder with a dataset's record."""

    def is_current(self, wanted: Wanted) -> bool:
        """Whether the newest version is of this commit, without reading all of the record."""

    def read(self, store: ObjectStore, uuid: str) -> Present:
        """Read a record of any writer; raises a `StoreError` if the store could not be read."""

    def next_version(self, wanted: Wanted, present: Present) -> NextVersion | None:
        """The version to write; None if the record is up to date.

        Raises a `PublishError` if the form cannot express the dataset.
        """

    def check(self, store: ObjectStore, snapshot: Snapshot) -> None:
        """Raise a `PublishError` if the form cannot express the dataset or shows other rows."""

    def difference(self, wanted: Wanted, present: Present) -> str:
        """How a record of this commit differs from what is committed; empty if it does not.

        Raises a `PublishError` as `check` does.
        """

    def verify_with_library(self, wanted: Wanted, present: Present) -> str:
        """What another reader finds wrong with a record in which `difference` found nothing.

        Empty if it finds nothing, or if none is installed.
        """

    def owns(self, uuid: str, key: str) -> bool:
        """Whether a file in a dataset's folder belongs to its record, not to its data."""

    def delete(self, store: ObjectStore, uuid: str) -> bool:
        """Delete a record; returns whether there was one.

        What readers start from goes first, so that none sees an old state.
        """
