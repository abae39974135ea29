"""Writes: what is known of a commit, which alone decides whether its files may be deleted."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ktk_engine.log.scope import new_commit_id


class CommitStatus(Enum):
    """What is known of a write's commit.

    Attributes:
        NOT_COMMITTED: no put of its entry was started, or the slot is known to be another's.
        UNKNOWN: a put of its entry was started, and nobody has said yet what it did.
        COMMITTED: its entry is in the log.
    """

    NOT_COMMITTED = "not committed"
    UNKNOWN = "unknown"
    COMMITTED = "committed"


@dataclass
class PendingCommit:
    """One write, from its announcement to its end.

    The code that puts the entry sets the fate before and after; what cleans up looks at nothing
    else. So an error or an interrupt, wherever it comes from, proves nothing by itself.

    Attributes:
        commit: id of the commit; every file's name holds it.
        fate: what is known of the commit.
    """

    commit: str = field(default_factory=new_commit_id)
    fate: CommitStatus = CommitStatus.NOT_COMMITTED
