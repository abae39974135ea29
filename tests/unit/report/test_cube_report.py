"""What a report shows, on files of ours and of Kartothek."""

from __future__ import annotations

import json
import re
import shutil

import pyarrow as pa
import pytest

from ktk_engine import Store
from ktk_engine.maintain.orphans import Orphan  # deep: one to be shown
from ktk_engine.report.cube_report import make_report
from ktk_engine.report.html_report import render_html
from ktk_engine.report.partition_map import MAXIMUM_BINS, Partitions, partition_map
from tests.support.committed import DbtNode
from tests.support.dataset_builder import build_nyc, write_plain_nyc
from tests.support.queries import Plan
from tests.support.voices import Remedy

PLACES = ["a/b", "50%", "x=y", "größe", "</script>"]


def cells(start, value=1.0):
    count = len(PLACES)
    columns = {"p": PLACES, "x": range(start, start + count), "v": [value] * count}
    return pa.table({**columns, "k": ["<b>", "", "'", '"', "&"]})


@pytest.fixture
def cube(store):
    opened = Store.of(store)
    more = pa.table({"p": PLACES[:3], "x": range(3), "w": pa.array([1, None, 3], pa.int16())})
    layout = {"dimension_columns": ["x"], "partition_by": ["p"], "seed": "cells", "indexes": ["k"]}
    return opened.build("c", {"cells": cells(0), "more": more}, **layout)


def test_what_enrichments_lack(store, cube):
    cube.append({"cells": cells(10)})
    report = make_report(store, "c")
    assert report.map.keys == ("p",) and report.map.labels == tuple(sorted(PLACES))
    assert report.map.missing == {"cells": 0, "more": 2} and report.map.left_out == ()
    (cell,) = (c for c in report.map.cells if (c.dataset, c.label) == ("cells", "x=y"))
    assert (cell.rows, cell.files, cell.missing) == (2, 2, 0)
    said = {(item.dataset, item.what) for item in report.remarks}
    assert ("more", "has nothing in 2 partitions of 5") in said
    assert any("small or overlaid, 10 of them overlaid" in what for name, what in said)
    assert all(item.fix for item in report.remarks if "overlaid" in item.what)


def test_a_partition_that_is_much_larger(store):
    rows = pa.table({"p": ["a"] * 50 + ["b", "c", "d"], "x": range(53)})
    Store.of(store).build("c", rows, dimension_columns=["x"], partition_by=["p"])
    said = [item.what for item in make_report(store, "c").remarks]
    assert said == ["partition a has 50 rows, 50 times the median"]


def test_what_no_model_builds_any_more(store, cube):
    orphan = Orphan("c", "c++more", DbtNode("model.shop.more", "shop"))
    (found,) = (i for i in make_report(store, "c", orphans=[orphan]).remarks if "model" in i.what)
    assert (found.dataset, found.fix) == ("more", Remedy.on("drop", "c", "more"))


def test_how_well_indices_choose(store, cube):
    found = {(i.dataset, i.column): i for i in make_report(store, "c").indices}
    index = found["cells", "k"]
    assert (index.values, index.files, index.mean, index.largest) == (5, 5, 1.0, 1)
    assert index.share == 0.2


def test_since_when_a_column_has_its_class(store, cube):
    cube = cube.append({"cells": cells(10)})
    wider = cells(20).append_column("n", pa.array(["1"] * len(PLACES)))
    cube = cube.extend({"cells2": wider.select(["p", "x", "n"])})
    rows = pa.table({"p": PLACES, "x": range(5), "n": [1] * 5})
    cube.extend({"cells2": rows}, overwrite=True)
    found = {(c.dataset, c.column): c for c in make_report(store, "c").columns}
    assert found["cells", "v"].since == "1" and found["cells2", "x"].since == "3"
    assert (found["cells2", "n"].type_class, found["cells2", "n"].since) == ("signed integer", "4")
    assert found["more", "w"].physical == ("int16",) and found["more", "w"].nulls == 1 / 3
    assert found["cells", "p"].physical == ("folder name",)
    assert found["cells", "x"].roles == ("dimension", "index")


def test_funnels(store, cube):
    report = make_report(store, "c", ["k = '<b>'", "nope = 1"])
    plan, problem = report.funnels.values()
    assert isinstance(plan, Plan) and plan.datasets[0].files.num_rows == 1
    assert "nope" in problem


def test_a_table(store):
    Store.of(store).write_table("t", pa.table({"a": [1, 2]}))
    report = make_report(store, "t", ["a > 1"])
    assert report.map is None and report.partitions["t"].sizes[()][0] == 2
    assert isinstance(report.funnels["a > 1"], Plan)
    assert "<title>t, version 1</title>" in render_html(report)


def test_no_data_file_is_opened(store, cube):
    shutil.rmtree(store.root / "c++cells" / "table")
    assert make_report(store, "c").map.partitions == 5


@pytest.mark.parametrize("write", [build_nyc, write_plain_nyc], ids=["ours", "kartothek"])
def test_other_programs_files(store, write):
    write(store)
    report = make_report(store, "nyc")
    assert report.partitions["flights"].sizes[("EWR",)][2] == 1
    assert "nyc" in render_html(report)


def test_nothing_of_the_store_is_markup(store, cube):
    page = render_html(make_report(store, "c", ["k = '<b>'"]))
    charts = re.search(r'id="charts">(.*?)</script>', page, re.DOTALL)[1]
    assert set(json.loads(charts)) == {"map", "indices", "files", "rows", "bytes", "funnel-0"}
    assert "k = '<b>'" not in page and "k = &#39;&lt;b&gt;&#39;" in page
    assert page.count("</script>") == 3


def test_many_partitions_share_columns_of_the_map():
    sizes = {(n // 100, n % 100): (1, 10, 1) for n in range(10_000)}
    fewer = {values: size for values, size in sizes.items() if values[0] != 7}
    found = partition_map(
        {"s": Partitions(("a", "b"), sizes), "e": Partitions(("a", "b"), fewer)}, "s"
    )
    assert len(found.labels) <= MAXIMUM_BINS and found.partitions == 10_000
    assert found.missing == {"s": 0, "e": 100}
    assert sum(cell.rows for cell in found.cells if cell.dataset == "s") == 10_000


def test_a_dataset_with_more_partition_columns():
    more = {("x", 1): (1, 1, 1), ("x", 2): (2, 1, 1)}
    both = {"s": Partitions(("a",), {("x",): (5, 1, 1)}), "e": Partitions(("a", "b"), more)}
    assert [cell.rows for cell in partition_map(both, "s").cells] == [5, 3]


def test_the_command(store, cube, ktk, tmp_path):
    path = tmp_path / "c.html"
    said = ktk("report", "c", "-o", str(path), "--query", "x = 1").output
    assert f"Wrote {path}" in said and path.read_text().startswith("<!doctype html>")
    assert "no cube or table" in ktk("report", "nope", code=1).output


def test_columns_are_counted_as_a_query_counts_them(store, cube):
    report = make_report(store, "c", ["x = 1"])
    (plan,) = report.funnels.values()
    assert f"<b>{len(plan.columns)}</b><span>columns</span>" in render_html(report)
    assert len(report.columns) > len(plan.columns)  # datasets share some


def test_a_query_is_a_line_a_dataset(store, cube):
    page = render_html(make_report(store, "c", ["x = 1"]))
    charts = json.loads(re.search(r'id="charts">(.*?)</script>', page, re.DOTALL)[1])
    funnel = charts["funnel-0"]
    values = funnel["layer"][0].get("data", funnel.get("data"))["values"]
    tiers = ["total", "partitions", "index", "statistics", "alignment"]
    assert [(v["dataset"], v["step"]) for v in values] == [
        (dataset, tier) for dataset in ("cells", "more") for tier in tiers
    ]
    assert funnel["height"] < 100
