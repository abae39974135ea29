"""What a write is told of the run that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from ktk_engine.log.change.reads import NOTHING_READ, Reads
from ktk_engine.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class WriteContext:
    """What a write is told of the run that it belongs to, beside its rows and its target.

    Attributes:
        history: what the log says of the commit, for people.
        built_by: dataset id -> the dbt model that builds it, for messages; None if unknown.
        full_refresh: whether the dataset is rebuilt, so that column classes may change.
        reads: what the rows were computed from, as `retry_write_on_conflict` has noted it.
        beside: datasets of the cube that lie in other stores, by id: what is written has to fit
            them, and they stay as they are.
        rebuilt: ids of the cube's datasets that the same run is yet to replace, asked each time:
            those that do not fit leave the cube until then.
    """

    history: Mapping[str, str] = field(default_factory=dict)
    built_by: Mapping[str, str] | None = None
    full_refresh: bool = False
    reads: Reads = NOTHING_READ
    beside: Mapping[str, Snapshot] = field(default_factory=dict)
    rebuilt: Callable[[], Collection[str]] = tuple


NO_CONTEXT = WriteContext()
