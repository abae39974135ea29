"""How a model's new rows meet the old ones: `incremental_strategy` and its related configs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.config.merge_clauses import parse_merge_clauses
from ktk_engine.change.merge_clauses import MergeClauses
from ktk_engine.types.did_you_mean import did_you_mean

Strategy = Literal[
    "append", "insert_overwrite", "merge", "delete+insert", "replace_where", "microbatch"
]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

_BY_KEY = ("merge", "delete+insert")
_WITH_PREDICATES = (*_BY_KEY, "replace_where")


@dataclass(frozen=True)
class Incremental:
    """What an incremental run does."""

    strategy: Strategy
    # columns by which a new row replaces an old one in `merge` and `delete+insert`
    unique_key: tuple[str, ...] = ()
    update_columns: tuple[str, ...] | None = None  # of a `merge`; None for all
    exclude_columns: tuple[str, ...] = ()  # that a `merge` does not update
    # SQL that says which old rows may be replaced; for `replace_where`, which are
    predicates: tuple[str, ...] = ()
    event_time: str = ""  # column whose window a batch of `microbatch` replaces
    clauses: MergeClauses | None = None  # of a `merge`; None without any in the model
    keyless: str = ""  # a strategy by key whose model has none: it appends, as in other adapters


def parse_incremental(
    model: str, config: Mapping[str, Any], cell_columns: tuple[str, ...]
) -> Incremental:
    """Read what a model says about its incremental runs.

    `cell_columns` are the partition and dimension columns of a cube's dataset, its default key;
    empty for a plain table. Raises a `DbtConfigError` for an unknown strategy, a missing key, or a
    setting that the strategy would have to ignore.
    """
    unique_key = _names(model, config, "unique_key") or cell_columns
    strategy = _strategy(model, config, unique_key)
    clauses = parse_merge_clauses(model, config, strategy)
    if strategy in _BY_KEY and not unique_key:
        if clauses is None:
            return Incremental("append", keyless=strategy)
        raise DbtConfigError(
            f"Model {model}: the conditions and actions of its {strategy} need a `unique_key`."
        )
    update = _names(model, config, "merge_update_columns") or None
    exclude = _names(model, config, "merge_exclude_columns")
    if (update or exclude) and strategy != "merge":
        raise DbtConfigError(
            f"Model {model}: merge_update_columns and merge_exclude_columns belong to the strategy "
            f"merge, not to {strategy}."
        )
    if update and exclude:
        raise DbtConfigError(
            f"Model {model}: give merge_update_columns or merge_exclude_columns, not both."
        )
    predicates = _predicates(model, config, strategy)
    event_time = _event_time(model, config) if strategy == "microbatch" else ""
    return Incremental(strategy, unique_key, update, exclude, predicates, event_time, clauses)


def replaces_partitions(config: Mapping[str, Any]) -> bool:
    """Whether runs of a model replace the partitions of new rows."""
    runs = config.get("materialized") == "incremental" or config.get("cube")
    return bool(runs) and config.get("incremental_strategy") == "insert_overwrite"


def _strategy(model: str, config: Mapping[str, Any], unique_key: tuple[str, ...]) -> Strategy:
    """The configured strategy, or dbt's default."""
    strategy = config.get("incremental_strategy") or "default"
    if strategy == "default":
        return "merge" if unique_key else "append"
    if strategy not in STRATEGIES:
        hint = did_you_mean(str(strategy), STRATEGIES)
        raise DbtConfigError(
            f"Model {model}: incremental_strategy {strategy!r} is not supported.{hint} "
            f"Supported: {', '.join(STRATEGIES)}."
        )
    materialized = config.get("materialized")
    if strategy == "microbatch" and materialized != "incremental":
        raise DbtConfigError(
            f"Model {model}: dbt runs batches only for models that are materialized incremental, "
            f"and this one is materialized {materialized}. Use materialized='incremental' with "
            "the same cube and dimension_columns, and cube_role='seed' or 'enrichment'."
        )
    if materialized == "seed" and strategy in _WITH_PREDICATES:
        raise DbtConfigError(
            f"Model {model}: incremental_strategy {strategy!r} is not for CSV files: use append or "
            "insert_overwrite, or select from the file in a model."
        )
    return cast(Strategy, strategy)


def _predicates(model: str, config: Mapping[str, Any], strategy: Strategy) -> tuple[str, ...]:
    """SQL texts; dbt has two names for them, and takes one text as well as a list."""
    key = "incremental_predicates" if config.get("incremental_predicates") else "predicates"
    value = config.get(key) or ()
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise DbtConfigError(
            f"Model {model}: config `{key}` must be SQL text or a list of it, but is {value!r}."
        )
    if texts and strategy not in _WITH_PREDICATES:
        raise DbtConfigError(
            f"Model {model}: config `{key}` belongs to the strategies "
            f"{', '.join(_WITH_PREDICATES)}, not to {strategy}."
        )
    if strategy == "replace_where" and not texts:
        raise DbtConfigError(
            f"Model {model}: incremental_strategy 'replace_where' needs `incremental_predicates` "
            "that say which rows are replaced, for instance [\"day >= '2024-01-01'\"]."
        )
    return tuple(texts)


def _event_time(model: str, config: Mapping[str, Any]) -> str:
    value = config.get("event_time")
    if not isinstance(value, str) or not value:
        raise DbtConfigError(
            f"Model {model}: incremental_strategy 'microbatch' needs `event_time`, the name of the "
            f"column with the time of each row, but it is {value!r}."
        )
    return value


def _names(model: str, config: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = config.get(key)
    if not value and value != 0:  # dbt's own tests pass '' and [] for none
        return ()
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise DbtConfigError(
            f"Model {model}: config `{key}` must be a column name or a list of them, but is "
            f"{value!r}."
        )
    return tuple(dict.fromkeys(names))
