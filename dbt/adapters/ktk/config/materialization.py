"""Invalid materializations and strategies, reported before the first model runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ktk_engine.types.did_you_mean import nearest_name

_OWN_PACKAGES = ("dbt", "dbt_spark", "dbt_ktk")
_PREFIX = "materialization_"
_TABLE = "Use table, or incremental: runs keep it up to date. A view always reads the newest rows."
# Those of other adapters, and what to use instead. dbt itself has macros for some that only end in
# an error.
_ELSEWHERE = {
    "materialized_view": _TABLE,
    "dynamic_table": _TABLE,
    "streaming_table": _TABLE,
    "external": "Use table with `publish: delta`, whose table other engines read. Read files of "
    "other programs as a source with `ktk_location`.",
}
_KNOWN = (
    *("view", "table", "incremental", "ephemeral", "snapshot", "seed"),
    *("cube", "cube_seed", "cube_enrichment"),
)


def materialization_problem(model: str, kind: str, macros: Iterable[Any]) -> str:
    """Say that a materialization is another adapter's or looks like a typo; empty for any other.

    dbt itself reports a wrong one only when it runs the model.
    """
    defined = [m for m in macros if m.name.startswith(f"{_PREFIX}{kind}_")]
    if kind in _ELSEWHERE and all(macro.package_name in _OWN_PACKAGES for macro in defined):
        return f"Model {model}: materialized='{kind}' is not for this adapter. {_ELSEWHERE[kind]}"
    if kind in _KNOWN or defined:
        return ""
    nearest = nearest_name(kind, _KNOWN)
    if nearest is None:
        return ""
    return (
        f"Model {model}: config `materialized` is '{kind}', which nothing here defines. Did you "
        f"mean `{nearest}`? Known: {', '.join(_KNOWN)}."
    )


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
