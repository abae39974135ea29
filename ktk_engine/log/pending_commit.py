"""What is known about a write's commit, which alone decides whether its files may be deleted."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ktk_engine.log.scope import new_commit_id


class CommitStatus(Enum):
    """What is known about a write's commit."""

    # No put of its entry was started, or another entry is known to have the slot.
    NOT_COMMITTED = "not committed"
    UNKNOWN = "unknown"  # A put of its entry was started, and its outcome is not known yet.
    COMMITTED = "committed"  # Its entry is in the log.


@dataclass
class PendingCommit:
    """One write, from its announcement to its end.

    The code that puts the entry sets the status before and after, and a clean-up looks at nothing
    else: an error or interrupt by itself proves nothing.
    """

    commit: str = field(default_factory=new_commit_id)  # every file's name holds it
    status: CommitStatus = CommitStatus.NOT_COMMITTED
    # Keys of its files that the decided commit does not name, since equal ones stay; None before.
    # A commit without a change is decided without an entry, and all of its files are among them.
    spare: frozenset[str] | None = None
