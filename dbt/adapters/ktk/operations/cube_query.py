"""The SQL that `cube_query(...)` compiles to, and the log line of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.relation import RelationConfig

from ktk_engine.errors import ConfigurationError
from ktk_engine.plan.explain import ignored_conditions, kind_of
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from ktk_engine.plan.plan import Plan


def cube_query_text(
    relation: str,
    columns: Sequence[str] | None,
    where: str | None,
    dimension_columns: Sequence[str] | None,
    partition_by: Sequence[str] | None,
    partition_columns: Sequence[str],
) -> str:
    """Write a query of a cube as a plain statement; the engine plans it when it runs.

    Each cell of the dimension columns and of the cube's partition columns is one row (decision 6).
    Raises a `ConfigurationError` if an argument is not a list of names.
    """
    chosen = _names("columns", columns)
    groups = _names("partition_by", partition_by)
    cells = _names("dimension_columns", dimension_columns)
    head = "select"
    if dimension_columns is not None:
        if not cells:
            raise ConfigurationError("cube_query: dimension_columns must not be empty.")
        head = "select distinct"
        chosen = list(dict.fromkeys([*cells, *partition_columns, *groups, *chosen]))
    elif columns is not None:
        # To sort by a column, a query has to select it.
        chosen = list(dict.fromkeys([*chosen, *groups]))
    listed = ", ".join(map(quote_identifier, chosen)) or "*"
    lines = [f"{head} {listed}", f"from {relation}"]
    if where:
        # The line break ends a trailing comment of the condition.
        lines.append(f"where ({where}\n)")
    if groups:
        order = dict.fromkeys([*groups, *(cells or ()), *(partition_columns if cells else ())])
        lines.append(
            "order by " + ", ".join(f"{quote_identifier(name)} nulls last" for name in order)
        )
    return "\n".join(lines)


def _names(what: str, given: object) -> list[str]:
    if given is None:
        return []
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigurationError(f"cube_query: {what} must be a list of names, but is {given!r}.")
    names = list(given)
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise ConfigurationError(f"cube_query: {what} holds {wrong[0]!r}, which is not a name.")
    return names


def cube_partitions(nodes: Iterable[RelationConfig]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Schema and name of each cube -> partition columns, as the model of its seed dataset says.

    So a query compiles to the same text before and after the cube is built.
    """
    known: list[Any] = list(nodes)
    seeds = {n.unique_id: n for n in known if _materialized(n) == "cube_seed"}
    found = {}
    for node in known:
        if _materialized(node) != "cube":
            continue
        for name in getattr(node.depends_on, "nodes", ()):
            if name in seeds:
                config = seeds[name].config
                given = config.get("partition_by") or config.get("partitioned_by") or ()
                columns = (given,) if isinstance(given, str) else tuple(given)
                found[str(node.schema), str(node.identifier)] = columns
    return found


def _materialized(node: Any) -> str:
    config: Mapping[str, Any] | None = getattr(node, "config", None)
    return str(config.get("materialized")) if config is not None else ""


def plan_line(plan: Plan) -> str:
    """Say in one line how many files of a cube, dataset or table a statement opens."""
    kind = kind_of(plan)
    parts = [
        f"{item.dataset} {item.steps[0].files:,} -> {item.files.num_rows:,}"
        for item in plan.datasets
    ]
    total = sum(item.steps[0].files for item in plan.datasets)
    opened = sum(item.files.num_rows for item in plan.datasets)
    each = [", ".join(parts)] if kind == "cube" else []
    unread = [f"not read: {', '.join(plan.unread)}"] if plan.unread else []
    reasons = [f"prunes nothing: {text}" for text in ignored_conditions(plan)]
    details = "; ".join([*each, *unread, *_missing_indices(plan), *reasons])
    line = f"{kind} {plan.cube}: files {total:,} -> {opened:,}"
    return f"{line} ({details})" if details else line


def _missing_indices(plan: Plan) -> list[str]:
    steps = [step for item in plan.datasets for step in item.steps if step.tier == "index"]
    return list(dict.fromkeys(step.reason for step in steps if step.reason))
