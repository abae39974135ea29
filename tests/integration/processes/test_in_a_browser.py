"""A report is drawn by a browser: no error, nothing fetched, and tooltips."""

from __future__ import annotations

import re
import shutil
import subprocess

import pyarrow as pa
import pytest

from ktk_engine import Store
from tests.support.queries import make_report, render_html

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
# What a person does: the pointer goes over the first box of the map.
POINT = """<script>
addEventListener("load", () => setTimeout(() => {
  const box = document.querySelector("#map path[aria-roledescription]");
  const place = box.getBoundingClientRect();
  const at = { clientX: place.x + 3, clientY: place.y + 3, bubbles: true };
  for (const kind of ["pointerover", "pointermove", "mouseover", "mousemove"])
    box.dispatchEvent(new MouseEvent(kind, at));
}, 1500));
</script>"""


@pytest.mark.skipif(not BROWSER, reason="no Chromium here")
def test_it_is_drawn(store, tmp_path):
    rows = pa.table({"p": ["a", "b", "c"], "x": [1, 2, 3], "v": [0.5, None, 1.0]})
    more = rows.slice(0, 2).select(["p", "x"])
    layout = {"dimension_columns": ["x"], "partition_by": ["p"], "seed": "cells"}
    Store.of(store).build("c", {"cells": rows, "more": more}, **layout)
    page = render_html(make_report(store, "c", ["x = 1"]))
    assert "default-src 'none'" in page  # a request would be an error on the console
    content, end, rest = page.rpartition("</body>")
    file = tmp_path / "page.html"
    file.write_text(content + POINT + end + rest, encoding="utf-8")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command = [BROWSER, *options, "--virtual-time-budget=6000", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert not re.findall(r"CONSOLE.*", done.stderr)
    assert 'data-drawn="yes"' in done.stdout
    for chart in ("map", "indices", "files", "rows", "bytes", "funnel-0"):
        place = rf'<div class="chart[^"]*" id="{chart}"[^>]*>(.*?)</div>'
        drawn = re.search(place, done.stdout, re.DOTALL)
        assert drawn and "<svg" in drawn[1], chart
    tooltip = re.search(r'id="vg-tooltip-element"[^>]*>(.*?)</div>', done.stdout, re.DOTALL)
    assert tooltip and "partitions" in tooltip[1] and "missing" in tooltip[1]
