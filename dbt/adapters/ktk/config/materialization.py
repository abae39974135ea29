"""Invalid materializations and strategies, reported before the first model runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ktk_engine.types.did_you_mean import nearest_name

_PREFIX = "materialization_"
_KNOWN = (
    *("view", "table", "incremental", "ephemeral", "snapshot", "seed"),
    *("cube", "cube_seed", "cube_enrichment"),
)


def materialization_problem(model: str, kind: str, macros: Iterable[str]) -> str:
    """Say that a materialization looks like a typo; empty if it has a macro or no name is near.

    dbt itself reports a wrong one only when it runs the model.
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


_OWN_PACKAGES = ("dbt", "dbt_spark", "dbt_ktk")


def strategy_problem(model: str, strategy: str, macros: Iterable[Any]) -> str:
    """Say that a project defines SQL of a strategy, which this adapter never runs; else empty."""
    name = f"get_incremental_{strategy.replace('+', '_')}_sql"
    for macro in macros:
        if macro.name == name and macro.package_name not in _OWN_PACKAGES:
            return (
                f"Model {model}: the macro {name} of {macro.package_name} would not be run: a "
                "strategy here is one commit of files, not a statement. Remove the macro, or write "
                "the rows that it would leave with materialized='table'."
            )
    return ""
