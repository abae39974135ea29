"""What a write is told of the run that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ktk_engine.log.change.reads import NOTHING_READ, Reads


@dataclass(frozen=True)
class WriteContext:
    """What a write is told of the run that it belongs to, beside its rows and its target.

    Attributes:
        history: what the log says of the commit, for people.
        built_by: dataset id -> the dbt model that builds it, for messages; None if unknown.
        full_refresh: whether the dataset is rebuilt, so that column classes may change.
        reads: what the rows were computed from, as `recompute` has noted it.
    """

    history: Mapping[str, str] = field(default_factory=dict)
    built_by: Mapping[str, str] | None = None
    full_refresh: bool = False
    reads: Reads = NOTHING_READ


NO_CONTEXT = WriteContext()
