"""The clauses of a model's merge: dbt-databricks' settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.config.config_reader import refusing
from ktk_engine.change.merge_clauses import DESTINATION, SOURCE, MergeClauses
from ktk_engine.sql.read_row_change import read_action
from ktk_engine.types.identifier import Identifier

_FLAGS = ("skip_matched_step", "skip_not_matched_step")
_TEXTS = (
    "matched_condition",
    "not_matched_condition",
    "not_matched_by_source_action",
    "not_matched_by_source_condition",
)
_ALIASES = {"target_alias": DESTINATION, "source_alias": SOURCE}
KEYS = (*_TEXTS, *_FLAGS, *_ALIASES)

# A setting without effect next to another one, and why.
_IDLE = (
    ("matched_condition", "skip_matched_step"),
    ("merge_update_columns", "skip_matched_step"),
    ("merge_exclude_columns", "skip_matched_step"),
    ("not_matched_condition", "skip_not_matched_step"),
)


def parse_merge_clauses(
    model: str, config: Mapping[str, Any], strategy: str
) -> MergeClauses | None:
    """Read the clauses of a model's merge; None without any: new rows replace those of their key.

    Raises a `DbtConfigError` for a value of another type, an invalid action, or a setting without
    effect.
    """
    given = {key: config[key] for key in KEYS if config.get(key) not in (None, "", False)}
    if not given:
        return None
    if strategy != "merge":
        raise DbtConfigError(
            f"Model {model}: {', '.join(given)} belong to the strategy merge, not to {strategy}."
        )
    _check_types(model, given)
    _check_idle(model, config, given)
    clauses = MergeClauses(**{**_ALIASES, **given})
    if Identifier(clauses.target_alias) == Identifier(clauses.source_alias):
        raise DbtConfigError(
            f"Model {model}: target_alias and source_alias are both {clauses.target_alias!r}: "
            "conditions could not tell stored rows from new ones."
        )
    if action := clauses.not_matched_by_source_action:
        with refusing(f"Model {model}: config `not_matched_by_source_action`"):
            read_action(action, clauses.target_alias)
    return clauses


def _check_types(model: str, given: Mapping[str, Any]) -> None:
    for key, value in given.items():
        kind, wanted = (bool, "true or false") if key in _FLAGS else (str, "text")
        if not isinstance(value, kind):
            raise DbtConfigError(
                f"Model {model}: config `{key}` must be {wanted}, but is {value!r}."
            )


def _check_idle(model: str, config: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse a setting without effect."""
    for key, other in _IDLE:
        if config.get(key) and given.get(other):
            raise DbtConfigError(
                f"Model {model}: config `{key}` does nothing with `{other}: true`: remove one."
            )
    action = "not_matched_by_source_action"
    if "not_matched_by_source_condition" in given and action not in given:
        raise DbtConfigError(
            f"Model {model}: config `not_matched_by_source_condition` needs `{action}`: delete, or "
            "update set column = ..."
        )
    if all(given.get(key) for key in _FLAGS) and action not in given:
        raise DbtConfigError(
            f"Model {model}: {' and '.join(_FLAGS)} leave its merge nothing to do without "
            f"`{action}`."
        )
