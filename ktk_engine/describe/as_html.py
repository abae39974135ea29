"""Cubes, tables and plans as HTML for notebooks; every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ktk_engine.conditions.condition import TrueCondition
from ktk_engine.conditions.render import to_sql
from ktk_engine.describe.history import HISTORY_HEADS, HistoryEntry, history_rows
from ktk_engine.describe.info import CubeDescription, DatasetDescription, Summary
from ktk_engine.formatting import counted, number, size
from ktk_engine.plan.explain import ignored_conditions, kind_of
from ktk_engine.plan.plan import DatasetPlan, Plan

_NUMBER = ' style="text-align: right"'
_TEXT = ' style="text-align: left"'


def store_html(url: str, contents: Iterable[Summary]) -> str:
    """Show what a store holds."""
    rows = [_summary(item) for item in contents]
    heads = ["name", "kind", "version", "datasets", "rows", "files", "size", "problem"]
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    shown = _table(heads, rows, ("version", "datasets", "rows", "files", "size"))
    return _titled("Store", url, shown if rows else "<p>It holds no cube and no table.</p>")


def cube_html(cube: CubeDescription) -> str:
    """Show the datasets of a cube or table, their layout and their columns."""
    heads = ["dataset", "role", "dimensions", "partitioned by", "indexes", "rows", "files", "size"]
    datasets = _table(heads, map(_dataset, cube.datasets), ("rows", "files", "size"))
    if cube.specification is None and cube.kind == "table":
        (item,) = cube.datasets
        columns = _table(["column", "class"], [list(pair) for pair in _columns(item)])
    else:
        rows = [
            [item.id, name, kind, _role(item, name)]
            for item in cube.datasets
            for name, kind in _columns(item)
        ]
        columns = _table(["dataset", "column", "class", "role"], rows)
    problems = [f"{item.id}: {item.problem}" for item in cube.datasets if item.problem]
    said = "".join(f"<p>{escape(text)}</p>" for text in problems)
    folded = f"<details><summary>Columns</summary>{columns}</details>"
    title = f"{cube.name}, version {cube.version}"
    return _titled(cube.kind.capitalize(), title, f"{datasets}{said}{folded}")


def plan_html(plan: Plan) -> str:
    """Show how many files of each dataset each step of planning leaves."""
    tiers = list(dict.fromkeys(step.tier for item in plan.datasets for step in item.steps))
    heads = ["dataset", "join", *tiers, "rows", "size", "where"]
    shown = _table(heads, (_funnel(item, tiers) for item in plan.datasets), heads[2:-1])
    notes = []
    if plan.unread:
        notes.append(f"Not read: {', '.join(plan.unread)}")
    if not isinstance(plan.condition, TrueCondition):
        notes.append(f"After the joins: {to_sql(plan.condition)}")
    notes += [f"Prunes nothing: {text}" for text in ignored_conditions(plan)]
    said = "".join(f"<p>{escape(text)}</p>" for text in notes)
    title = f"{plan.cube}, version {plan.version}: {counted(len(plan.columns), 'column')}"
    if plan.limit is not None:
        title += f", the first {counted(plan.limit, 'row')}"
    return _titled(f"Query of {kind_of(plan)}", title, shown + said)


def history_html(entries: Iterable[HistoryEntry]) -> str:
    """Show commits in the given order."""
    return _table(HISTORY_HEADS, history_rows(entries), ("version", "rows", "files"))


def _summary(item: Summary) -> list[str]:
    counts = (item.version, item.datasets, item.rows, item.files)
    return [item.name, item.kind, *map(number, counts), size(item.bytes), item.problem]


def _dataset(item: DatasetDescription) -> list[str]:
    keys = ", ".join(item.partition_keys)
    return [
        item.id,
        item.role,
        ", ".join(item.dimension_columns),
        f"{keys} ({number(item.partitions)})" if keys else "",
        ", ".join(item.indexes),
        number(item.rows),
        number(item.files),
        size(item.bytes),
    ]


def _columns(item: DatasetDescription) -> list[tuple[str, str]]:
    return list((item.columns or {}).items())


def _role(item: DatasetDescription, name: str) -> str:
    roles = {
        "dimension": item.dimension_columns,
        "partition": item.partition_keys,
        "index": item.indexes,
    }
    return ", ".join(role for role, names in roles.items() if name in names)


def _funnel(item: DatasetPlan, tiers: Sequence[str]) -> list[str]:
    """The files that each tier left, then what it reads of those."""
    left = {step.tier: step for step in item.steps}
    steps = [left.get(tier) for tier in tiers]
    files = ["" if step is None else number(step.files) for step in steps]
    where = "" if isinstance(item.condition, TrueCondition) else to_sql(item.condition)
    return [item.dataset, item.join, *files, number(item.rows), size(item.bytes), where]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()) -> str:
    """A table whose numeric columns are right-aligned."""
    styles = [_NUMBER if head in numbers else _TEXT for head in heads]
    head = "".join(f"<th{s}>{escape(h)}</th>" for h, s in zip(heads, styles, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{s}>{escape(cell)}</td>" for cell, s in zip(row, styles, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _titled(kind: str, name: str, body: str) -> str:
    return f"<div><p><strong>{escape(kind)}</strong> {escape(name)}</p>{body}</div>"
