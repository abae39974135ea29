"""A materialization that nobody has defined, said before the first model runs."""

from __future__ import annotations

from collections.abc import Iterable

from ktk_engine.types.did_you_mean import nearest_name

_PREFIX = "materialization_"
_KNOWN = (
    *("view", "table", "incremental", "ephemeral", "snapshot", "seed"),
    *("cube", "cube_seed", "cube_enrichment"),
)


def materialization_problem(model: str, kind: str, macros: Iterable[str]) -> str:
    """Say that a model's materialization is a typo; dbt itself says so when it is the model's turn.

    Args:
        model: the model's name, for messages.
        kind: its `materialized`.
        macros: the names of all macros of the project and its packages, which may define more.

    Returns:
        The problem, empty if there is none or if no known name is near.
    """
    if kind in _KNOWN or any(name.startswith(f"{_PREFIX}{kind}_") for name in macros):
        return ""
    nearest = nearest_name(kind, _KNOWN)
    if nearest is None:
        return ""
    return (
        f"Model {model}: config `materialized` is '{kind}', which nothing here defines. Did you "
        f"mean `{nearest}`? Known: {', '.join(_KNOWN)}."
    )
