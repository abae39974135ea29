"""The charts of a report, in Vega-Lite.

The palette is safe for colour-blind readers, and text has the page's colour, so charts fit light,
dark and paper.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import altair as alt

from ktk_engine.describe.history import HistoryEntry
from ktk_engine.formatting import moment, size
from ktk_engine.plan.plan import Plan
from ktk_engine.report.cube_report import CubeReport
from ktk_engine.report.index_selectivity import IndexSelectivity
from ktk_engine.report.partition_map import PartitionMap

_PALETTE = ["#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#eeca3b"]
_ROW, _BAR = 34, 26  # pixels
_TICKS = 5  # of an axis
_LETTERS = 80  # of labels next to each other
# The day above the time, for narrow labels.
_MOMENT = "[utcFormat(datum.value, '%b %d'), utcFormat(datum.value, '%H:%M:%S')]"
_WIDE = {"width": "container", "background": "transparent"}


def charts_of(report: CubeReport) -> dict[str, dict[str, Any]]:
    """Vega-Lite specifications of a report's charts, by the id of their place in the page."""
    names = list(report.partitions)
    charts: dict[str, alt.Chart | alt.LayerChart] = {}
    if report.map is not None:
        charts["map"] = _map(report.map, names)
    if report.indices:
        charts["indices"] = _indices(report.indices)
    if any(len(sizes) for sizes in report.file_bytes.values()):
        charts["files"] = _file_sizes(report.file_bytes, names)
    if report.history:
        charts["rows"] = _timeline(report.history, names, "rows")
        charts["bytes"] = _timeline(report.history, names, "bytes")
    for number, plan in enumerate(report.funnels.values()):
        if isinstance(plan, Plan):
            charts[f"funnel-{number}"] = _funnel(plan)
    return {name: chart.to_dict() for name, chart in charts.items()}


def _map(shown: PartitionMap, names: Sequence[str]) -> alt.LayerChart:
    """Datasets over partitions: darker is more, a ring means missing."""
    cells = [asdict(cell) for cell in shown.cells]
    for measure in ("rows", "bytes", "files"):
        most: dict[str, int] = {}
        for cell in cells:
            most[cell["dataset"]] = max(most.get(cell["dataset"], 0), cell[measure], 1)
        for cell in cells:
            cell[f"{measure}_share"] = cell[measure] / most[cell["dataset"]]
    measure = alt.param(
        name="measure",
        value="rows",
        bind=alt.binding_select(options=["rows", "bytes", "files"], name="Colour by "),
    )
    here = [name for name in names if name not in shown.left_out]
    is_long = sum(map(len, shown.labels)) > _LETTERS
    base = (
        alt.Chart(alt.Data(values=cells))
        .transform_calculate(share="datum[measure + '_share']")
        .encode(
            x=alt.X("label:O", sort=list(shown.labels), title=" / ".join(shown.keys)).axis(
                labelOverlap=True, labelAngle=-45 if is_long else 0, labelLimit=120
            ),
            y=alt.Y("dataset:N", sort=here, title=None),
            tooltip=[
                alt.Tooltip("dataset:N"),
                alt.Tooltip("label:N", title=" / ".join(shown.keys)),
                alt.Tooltip("partitions:Q", format=","),
                alt.Tooltip("missing:Q", format=","),
                alt.Tooltip("rows:Q", format=","),
                alt.Tooltip("bytes:Q", format=",.3~s"),
                alt.Tooltip("files:Q", format=","),
            ],
        )
    )
    colour = alt.Color("share:Q", title="share of the dataset's largest").scale(
        scheme=alt.SchemeParams(name="teals", extent=[0.1, 0.8]), domain=[0, 1]
    )
    boxes = base.mark_rect(stroke="#8886", strokeWidth=0.5).encode(
        color=alt.condition("datum.missing < datum.partitions", colour, alt.value("transparent"))
    )
    rings = (
        base.transform_filter("datum.missing > 0")
        .mark_point(shape="circle", color="#e45756", size=55, strokeWidth=2)
        .encode(opacity=alt.Opacity("gone:Q", legend=None).scale(domain=[0, 1], range=[0.35, 1]))
        .transform_calculate(gone="datum.missing / datum.partitions")
    )
    height = _ROW * len(here)
    return alt.layer(boxes, rings).add_params(measure).properties(height=height, **_WIDE)


def _indices(indices: Sequence[IndexSelectivity]) -> alt.LayerChart:
    """The share of the files that a query of one value opens."""
    values = [
        {**asdict(item), "index": f"{item.dataset}.{item.column}", "share": item.share}
        for item in indices
    ]
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("share:Q", title="share of files that one value opens, on average")
        .axis(format="%", tickCount=6)
        .scale(domain=[0, 1]),
        y=alt.Y("index:N", sort="x", title=None),
    )
    bars = base.mark_bar(minBandSize=2).encode(
        color=alt.condition(
            "datum.files > 1",
            alt.Color("share:Q", legend=None).scale(
                domain=[0, 0.5, 1], range=["#54a24b", "#eeca3b", "#e45756"]
            ),
            alt.value("#9aa7b4"),  # one file is always opened
        ),
        tooltip=[
            alt.Tooltip("index:N"),
            alt.Tooltip("values:Q", format=",", title="different values"),
            alt.Tooltip("files:Q", format=",", title="files of the dataset"),
            alt.Tooltip("mean:Q", format=",.1f", title="files of a value, on average"),
            alt.Tooltip("largest:Q", format=",", title="files of the most frequent value"),
        ],
    )
    shares = base.mark_text(align="left", dx=5, color="#888888").encode(
        text=alt.Text("share:Q", format=".1%")
    )
    return alt.layer(bars, shares).properties(height=_BAR * len(values), **_WIDE)


def _file_sizes(sizes: Mapping[str, Any], names: Sequence[str]) -> alt.Chart:
    """A histogram of file sizes, by powers of four."""
    values: list[dict[str, Any]] = []
    for name, column in sizes.items():
        found = Counter(int(math.log(max(item, 1), 4)) for item in column.to_pylist())
        values += [
            {"dataset": name, "power": power, "size": f"{size(4**power)} and more", "files": count}
            for power, count in sorted(found.items())
        ]
    order = [f"{size(4**power)} and more" for power in sorted({item["power"] for item in values})]
    return (
        alt.Chart(alt.Data(values=values))
        .mark_bar()
        .encode(
            x=alt.X("size:O", sort=order, title="size of a file").axis(labelAngle=-30),
            y=alt.Y("files:Q", title="files").axis(
                tickCount=min(sum(item["files"] for item in values), _TICKS), format=",d"
            ),
            color=_by_dataset(names),
            tooltip=["dataset:N", "size:N", alt.Tooltip("files:Q", format=",")],
        )
        .properties(height=200, **_WIDE)
    )


def _timeline(
    history: Sequence[HistoryEntry], names: Sequence[str], measure: str
) -> alt.LayerChart:
    values = [
        {
            "time": entry.time.isoformat(),
            "committed": moment(entry.time),
            "version": entry.version,
            "dataset": change.dataset,
            "value": getattr(change, measure),
            "operation": change.operation,
            "by": entry.history.get("node") or entry.history.get("command", ""),
        }
        for entry in history
        if entry.time is not None
        for change in entry.changes
    ]
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("time:T", title=None)
        .axis(labelExpr=_MOMENT, tickCount=5, labelOverlap="greedy", labelSeparation=10)
        .scale(type="utc"),
        y=alt.Y("value:Q", title=measure).axis(
            format="~s", tickCount=min(max(value["value"] or 1 for value in values), _TICKS)
        ),
        color=_by_dataset(names),
        tooltip=[
            *("committed:N", "version:Q", "dataset:N", "operation:N", "by:N"),
            alt.Tooltip("value:Q", format=",", title=measure),
        ],
    )
    line = base.mark_line(interpolate="step-after", strokeWidth=1.5)
    points = base.mark_point(filled=True, size=55)
    return alt.layer(line, points).properties(height=180, **_WIDE)


def _funnel(plan: Plan) -> alt.LayerChart:
    """A line per dataset: the files that remain after each step; paler is fewer."""
    values = [
        {
            "step": step.tier,
            "dataset": item.dataset,
            "share": step.files / max(item.steps[0].files, 1),
            "files": step.files,
            "rows": step.rows,
            "bytes": step.bytes,
            "reason": step.reason,
        }
        for item in plan.datasets
        for step in item.steps
    ]
    tiers = list(dict.fromkeys(value["step"] for value in values))
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("step:O", sort=tiers, title="files left over").axis(
            labelAngle=0, orient="top", labelOverlap=False
        ),
        y=alt.Y("dataset:N", sort=None, title=None),
        tooltip=[
            *("dataset:N", "step:N"),
            *(alt.Tooltip(f"{name}:Q", format=",") for name in ("files", "rows", "bytes")),
            alt.Tooltip("reason:N"),
        ],
    )
    boxes = base.mark_rect(stroke="#8886", strokeWidth=0.5).encode(
        color=alt.Color("share:Q", legend=None).scale(scheme="teals", domain=[0, 1])
    )
    counts = base.mark_text().encode(
        text=alt.Text("files:Q", format=","),
        color=alt.condition("datum.share > 0.5", alt.value("#ffffff"), alt.value("#1c2733")),
    )
    height = _ROW * len(plan.datasets)
    return alt.layer(boxes, counts).properties(height=height, **_WIDE)


def _by_dataset(names: Sequence[str]) -> alt.Color:
    """A colour of its own for each dataset; beyond the palette they differ in hue and lightness."""
    count, colours = len(names), _PALETTE[: len(names)]
    if count > len(_PALETTE):
        hues = [(360 * place // count, (40, 60, 75)[place % 3]) for place in range(count)]
        colours = [f"hsl({hue}, 60%, {lightness}%)" for hue, lightness in hues]
    legend = alt.Legend(columns=3, symbolLimit=0, labelLimit=120)
    return alt.Color("dataset:N", title=None, legend=legend).scale(
        domain=list(names), range=colours
    )
