"""Explains a plan to people and programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from ktk_engine.conditions.condition import Condition, IsIn, Or, TrueCondition, conjuncts
from ktk_engine.conditions.render import to_sql
from ktk_engine.formatting import counted
from ktk_engine.plan.plan import DatasetPlan, Ignored, Plan
from ktk_engine.types.quote import quote_identifier

_LONGEST_LIST = 20


def explain(plan: Plan) -> str:
    """Give a plan as text: what each tier of pruning left of each dataset."""
    columns = counted(len(plan.columns), "column")
    head = f"{kind_of(plan)} {plan.cube}, version {plan.version}: {columns}"
    if plan.limit is not None:
        head += f", the first {counted(plan.limit, 'row')}: no file is opened that cannot hold one"
    lines = [head, *(_line(plan, item) for item in plan.datasets)]
    if plan.unread:
        lines.append(f"  not read: {', '.join(plan.unread)}")
    if not isinstance(plan.condition, TrueCondition):
        lines.append(f"  after the joins: {_condition(plan.condition)}")
    lines += [f"  prunes nothing: {text}" for text in ignored_conditions(plan)]
    if plan.order_by and any(item.distinct for item in plan.datasets):
        lines.append(f"  one row for each {', '.join(plan.datasets[0].distinct)}")
    return "\n".join(lines)


def kind_of(plan: Plan) -> str:
    """Say what is planned: a cube, one of its datasets by itself, or a plain table."""
    first = plan.datasets[0]
    if not first.cell_columns:
        return "table"
    return "dataset" if first.snapshot.uuid == plan.cube else "cube"


def explain_as_dict(plan: Plan) -> dict[str, Any]:
    """Give a plan as data for JSON."""
    return {
        "cube": plan.cube,
        "version": plan.version,
        "columns": list(plan.columns),
        "datasets": [_dataset(plan, item) for item in plan.datasets],
        "unread": list(plan.unread),
        "condition_after_joins": to_sql(plan.condition),
        "ignored": ignored_conditions(plan),
        **({} if plan.limit is None else {"limit": plan.limit}),
    }


def ignored_conditions(plan: Plan) -> list[str]:
    """Say which conditions could not prune, as in "cast on partition column `month`"."""
    return [f"{item.function} on {_role(plan, item)} `{item.column}`" for item in plan.ignored]


def _role(plan: Plan, item: Ignored) -> str:
    snapshots = [dataset.snapshot for dataset in plan.datasets]
    if any(item.column in snapshot.partition_keys for snapshot in snapshots):
        return "partition column"
    if any(item.column in snapshot.with_index for snapshot in snapshots):
        return "index column"
    return "column"


_MOVES: dict[Movement, str] = {
    "none": "no shuffle",
    "shared": "read for all partitions, since it has none of their columns",
}


def _line(plan: Plan, item: DatasetPlan) -> str:
    text = f"  {item.join:5} {item.dataset}: {_files(item)}{_sizes(item)}"
    if len(plan.datasets) > 1:
        text += f"; {_MOVES[_movement(plan, item)]}"
    if item.overlaid:
        text += "; overlaid, the last file wins"
    if not isinstance(item.condition, TrueCondition):
        text += f"; where {_condition(item.condition)}"
    reasons = "; ".join(step.reason for step in item.steps if step.reason)
    return text + (f" ({reasons})" if reasons else "")


def _condition(condition: Condition) -> str:
    """A condition as people read it, with long lists counted."""
    return " and ".join(map(_part, conjuncts(condition)))


def _part(part: Condition) -> str:
    match part:
        case IsIn(column, values) if len(values) > _LONGEST_LIST:
            return f"{quote_identifier(column)} in ({len(values):,} values)"
        case Or(items):
            more = len(items) - _LONGEST_LIST
            text = " or ".join(map(to_sql, items[:_LONGEST_LIST]))
            return f"({text} or {more:,} more)" if more > 0 else f"({to_sql(part)})"
        case _:
            return to_sql(part)


def _files(item: DatasetPlan) -> str:
    """How many files there are, how many are opened, and how many each tier of pruning left."""
    if not item.steps:
        return f"files {item.files.num_rows:,}"
    first, *tiers = item.steps
    left = ", ".join(f"{step.tier} {step.files:,}" for step in tiers)
    return f"files {first.files:,} -> {item.steps[-1].files:,}" + (f" ({left})" if left else "")


def _sizes(item: DatasetPlan) -> str:
    """Rows and bytes of all files and of those to open, where known."""
    first, last = item.steps[0] if item.steps else None, item
    if first is None or first.rows is None or first.bytes is None:
        return ""
    if last.rows is None or last.bytes is None:
        return ""
    return (
        f"; rows {first.rows:,} -> {last.rows:,}; "
        f"MB {first.bytes / 1e6:,.1f} -> {last.bytes / 1e6:,.1f}"
    )


def _dataset(plan: Plan, item: DatasetPlan) -> dict[str, Any]:
    return {
        "dataset": item.dataset,
        "join": item.join,
        "movement": _movement(plan, item),
        "on": list(item.on),
        "columns": list(item.columns),
        "files": item.files.num_rows,
        "rows": item.rows,
        "bytes": item.bytes,
        "overlaid": item.overlaid,
        "condition": to_sql(item.condition),
        "pruning": [asdict(step) for step in item.steps],
    }


Movement = Literal["none", "shared"]


def _movement(plan: Plan, item: DatasetPlan) -> Movement:
    """Say whether the rows of a dataset are read for one partition of the cube or for several.

    It is "none" for the seed dataset, for datasets that share a partition column with it, and for
    all datasets of a cube without partitions; others are "shared".
    """
    keys = set(plan.datasets[0].snapshot.partition_keys)
    if item.join == "seed" or not keys or keys & set(item.snapshot.partition_keys):
        return "none"
    return "shared"
