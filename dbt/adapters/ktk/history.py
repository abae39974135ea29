"""What the log keeps of a commit for people: who, which dbt node, which invocation."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from typing import Any

OWNER = "user"


def history_of(model: Mapping[str, Any]) -> dict[str, str]:
    """What the log keeps of a dbt run.

    Args:
        model: the node as Jinja's `model`.
    """
    from dbt_common.invocation import get_invocation_id

    return {
        "node": str(model["unique_id"]),
        "invocation": str(get_invocation_id()),
        OWNER: user_name(),
    }


def statement_history() -> dict[str, str]:
    """What the log keeps of a statement that somebody wrote by hand."""
    return {"node": "SQL statement", OWNER: user_name()}


def user_name() -> str:
    """Name the account that this process runs as, as Spark names the owner of a table.

    Returns:
        Its name; empty where the system knows none, as in some containers.
    """
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return ""
