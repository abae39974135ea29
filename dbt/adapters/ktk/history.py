"""What the log keeps of a commit for users: who, which dbt node, which invocation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ktk_engine.warehouse.actor import OWNER, user_name


def history_of(model: Mapping[str, Any]) -> dict[str, str]:
    """What the log keeps of a dbt run, from Jinja's `model`."""
    from dbt_common.invocation import get_invocation_id

    return {
        "node": str(model["unique_id"]),
        "invocation": str(get_invocation_id()),
        OWNER: user_name(),
    }
