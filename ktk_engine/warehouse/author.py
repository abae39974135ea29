"""Who changes relations: a node of dbt, or a person with a statement."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from dataclasses import dataclass

from ktk_engine.gate.claimant import Claimant
from ktk_engine.gate.target import Target
from ktk_engine.warehouse.name_claim import NameClaim

OWNER = "user"
"""Key of a commit's history: the account that made it."""


@dataclass(frozen=True)
class Author:
    """Who changes relations.

    Attributes:
        history: what the log says of its commits.
        claimant: the node; None for a statement by hand.
        full_refresh: whether what it built before may go.
    """

    history: Mapping[str, str]
    claimant: Claimant | None = None
    full_refresh: bool = False

    def view(self, name: str) -> NameClaim:
        """Claim a name for a view."""
        return NameClaim(name, "", self.claimant, self.full_refresh)

    def dataset(self, target: Target) -> NameClaim:
        """Claim a name for a dataset."""
        name = target.relation or target.dataset
        return NameClaim(name, target.uuid, self.claimant, self.full_refresh, target.keeps_versions)


def by_hand() -> Author:
    """Somebody who wrote a statement."""
    return Author(statement_history())


def statement_history() -> dict[str, str]:
    """What the log keeps of a statement that somebody wrote by hand."""
    return {"node": "SQL statement", OWNER: user_name()}


def python_history() -> dict[str, str]:
    """What the log keeps of what a Python program did."""
    return {"command": "Python", OWNER: user_name()}


def user_name() -> str:
    """Name the account that this process runs as, as Spark names the owner of a table.

    Returns:
        Its name; empty where the system knows none, as in some containers.
    """
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return ""
