"""Explains a plan to a person, and to a machine."""

from __future__ import annotations

from typing import Any

from ktk_engine.plan.plan import DatasetPlan, Plan
from ktk_engine.types.condition import TrueCondition
from ktk_engine.types.render_condition import to_sql


def explain(plan: Plan) -> str:
    """Give a plan as text: for each dataset what every tier of pruning left over.

    Args:
        plan: any plan.
    """
    head = f"cube {plan.cube}, version {plan.version}: {len(plan.columns)} columns"
    lines = [head, *(_line(item) for item in plan.datasets)]
    if plan.unread:
        lines.append(f"  not read: {', '.join(plan.unread)}")
    if not isinstance(plan.condition, TrueCondition):
        lines.append(f"  after the joins: {to_sql(plan.condition)}")
    if len(plan.datasets) > 1:
        how = "without an exchange" if plan.bucketing else "with exchanges (not bucketed alike)"
        lines.append(f"  partitioned datasets are joined {how}")
    return "\n".join(lines)


def explain_as_dict(plan: Plan) -> dict[str, Any]:
    """Give a plan as data that JSON can hold."""
    return {
        "cube": plan.cube,
        "version": plan.version,
        "columns": list(plan.columns),
        "datasets": [_dataset(item) for item in plan.datasets],
        "unread": list(plan.unread),
        "condition_after_joins": to_sql(plan.condition),
        "bucketed": plan.bucketing is not None,
    }


def _line(item: DatasetPlan) -> str:
    tiers = " -> ".join(f"{step.files} {step.tier}" for step in item.steps)
    size = "" if item.bytes is None else f", {item.bytes / 1e6:.1f} MB"
    reasons = "; ".join(step.reason for step in item.steps if step.reason)
    text = f"  {item.join:5} {item.dataset}: files {tiers}{size}"
    if item.overlaid:
        text += ", overlaid"
    if not isinstance(item.condition, TrueCondition):
        text += f", where {to_sql(item.condition)}"
    return text + (f" ({reasons})" if reasons else "")


def _dataset(item: DatasetPlan) -> dict[str, Any]:
    return {
        "dataset": item.dataset,
        "join": item.join,
        "on": list(item.on),
        "columns": list(item.columns),
        "files": item.files.num_rows,
        "rows": item.rows,
        "bytes": item.bytes,
        "overlaid": item.overlaid,
        "condition": to_sql(item.condition),
        "pruning": [{"tier": s.tier, "files": s.files, "reason": s.reason} for s in item.steps],
    }
