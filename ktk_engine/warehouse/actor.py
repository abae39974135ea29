"""Who changes relations: a dbt node, or a user with a statement."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from dataclasses import dataclass

from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.dbt_node import Owner
from ktk_engine.warehouse.name_claim import NameClaim

OWNER = "user"
"""Key of a commit's history: the account that made it."""


@dataclass(frozen=True)
class Actor:
    """Who changes relations."""

    history: Mapping[str, str]  # what the log records of its commits
    owner: Owner | None = None  # the node; None for a statement by hand
    full_refresh: bool = False  # whether what it built before may be dropped

    def view(self, name: str) -> NameClaim:
        """Claim a name for a view."""
        return NameClaim(name, "", self.owner, self.full_refresh)

    def dataset(self, target: WriteRequest) -> NameClaim:
        """Claim a name for a dataset."""
        name = target.relation or target.dataset
        return NameClaim(name, target.uuid, self.owner, self.full_refresh, target.keeps_versions)


def statement_actor() -> Actor:
    """The actor of a statement by hand."""
    return Actor(statement_history())


def statement_history() -> dict[str, str]:
    """What the log records of a statement by hand."""
    return {"node": "SQL statement", OWNER: user_name()}


def python_history() -> dict[str, str]:
    """What the log records of a Python program."""
    return {"command": "Python", OWNER: user_name()}


def user_name() -> str:
    """The account of this process, as Spark names owners of tables; may be empty in containers."""
    try:
        return getpass.getuser().encode(errors="backslashreplace").decode()
    except (ImportError, KeyError, OSError):
        return ""
