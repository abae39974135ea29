"""What a write knows of the run that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from ktk_engine.log.change.reads import NOTHING_READ, Reads
from ktk_engine.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class WriteContext:
    """The context of a write: the run that it belongs to."""

    history: Mapping[str, str] = field(default_factory=dict)  # of the commit, for the log
    built_by: Mapping[str, str] | None = None  # dataset id -> its dbt model, for messages
    full_refresh: bool = False  # the dataset is rebuilt: column classes may change
    reads: Reads = NOTHING_READ  # as `retry_write_on_conflict` noted them
    # The cube's datasets in other stores, by id: the write has to fit them, and they stay.
    elsewhere: Mapping[str, Snapshot] = field(default_factory=dict)
    # Ids of the cube's datasets that the run is yet to replace: misfits among them leave the cube.
    rebuilt: Callable[[], Collection[str]] = tuple


NO_CONTEXT = WriteContext()
