"""How a model's new rows meet the old ones: `incremental_strategy` and what belongs to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from dbt_common.exceptions import DbtConfigError

from ktk_engine.types.suggestion import did_you_mean

Strategy = Literal["append", "insert_overwrite", "merge", "delete+insert"]
STRATEGIES: tuple[Strategy, ...] = ("append", "insert_overwrite", "merge", "delete+insert")

# What other strategies and adapters know and this one does not: ignored, it would change results.
_UNKNOWN = ("incremental_predicates", "predicates", "batch_size", "begin", "lookback")


@dataclass(frozen=True)
class Incremental:
    """What an incremental run does.

    Attributes:
        strategy: the verb.
        unique_key: columns by which a new row replaces an old one, for `merge` and
            `delete+insert`.
        update_columns: columns that a `merge` updates; None means all.
        exclude_columns: columns that a `merge` does not update.
    """

    strategy: Strategy
    unique_key: tuple[str, ...] = ()
    update_columns: tuple[str, ...] | None = None
    exclude_columns: tuple[str, ...] = ()

    def updated(self, columns: Iterable[str]) -> tuple[str, ...] | None:
        """The columns of a model that a `merge` updates; None means all."""
        if self.exclude_columns:
            return tuple(c for c in columns if c not in self.exclude_columns)
        return self.update_columns


def parse_incremental(
    model: str, config: Mapping[str, Any], cell_columns: tuple[str, ...]
) -> Incremental:
    """Read what a model says of its incremental runs.

    Args:
        model: its name, for messages.
        config: its configuration.
        cell_columns: partition and dimension columns of a cube's dataset: its key unless the
            model names another; empty for a plain table.

    Raises:
        DbtConfigError: an unknown strategy, a missing key, or a setting that this adapter would
            have to ignore.
    """
    unique_key = _names(model, config, "unique_key") or cell_columns
    strategy = config.get("incremental_strategy") or ("merge" if unique_key else "append")
    if strategy == "default":
        strategy = "merge" if unique_key else "append"
    if strategy not in STRATEGIES:
        nearest = did_you_mean(str(strategy), STRATEGIES)
        hint = f" Did you mean `{nearest}`?" if nearest else ""
        raise DbtConfigError(
            f"Model {model}: incremental_strategy {strategy!r} is not supported.{hint} "
            f"Supported: {', '.join(STRATEGIES)}."
        )
    for key in _UNKNOWN:
        if config.get(key) and not (key == "lookback" and config[key] == 1):
            raise DbtConfigError(f"Model {model}: config `{key}` is not supported yet. Remove it.")
    if strategy in ("merge", "delete+insert") and not unique_key:
        raise DbtConfigError(
            f"Model {model}: incremental_strategy {strategy!r} needs a `unique_key`."
        )
    if strategy == "insert_overwrite" and not config.get("partition_by"):
        raise DbtConfigError(
            f"Model {model}: incremental_strategy 'insert_overwrite' replaces partitions and "
            "needs `partition_by`."
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
    return Incremental(cast(Strategy, strategy), unique_key, update, exclude)


def _names(model: str, config: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = config.get(key)
    if not value and value != 0:  # dbt's own tests give '' and [] for none
        return ()
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise DbtConfigError(
            f"Model {model}: config `{key}` must be a column name or a list of them, but is "
            f"{value!r}."
        )
    return tuple(dict.fromkeys(names))
