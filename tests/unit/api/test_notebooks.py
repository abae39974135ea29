"""Objects show themselves as HTML in notebooks; whatever a name holds, it stays text."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

from ktk_engine import Store

EVIL = "<script>&\"'"
CELLS = pa.table({"P": ["a", "b"], "L": [1, 2], EVIL: ["x", "y"]})
MORE = pa.table({"L": [1, 2], "w": [1.5, None]})
_KNOWN = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}


class Reader(HTMLParser):
    """Gives the rows of all tables; refuses tags that nobody wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        assert tag in _KNOWN
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def read(shown: object) -> Reader:
    reader = Reader()
    reader.feed(shown._repr_html_())
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "an")
    store.build(
        "c", {"cells": CELLS, "more": MORE}, seed="cells", dimension_columns=["L"],
        partition_by=["P"], indexes=[EVIL],
    )  # fmt: skip
    store.write_table("t", pa.table({"id": [1]}))
    return store


def test_a_store_shows_what_it_holds(store, tmp_path):
    found = read(store)
    assert store.url in found.text
    assert found.rows[0] == ["name", "kind", "version", "datasets", "rows", "files", "size"]
    assert found.rows[1][:6] == ["c", "cube", "1", "2", "2", "3"]
    assert found.rows[2][:6] == ["t", "table", "1", "1", "1", "1"]
    assert "no cube and no table" in read(Store(tmp_path / "empty")).text


def test_a_cube_shows_datasets_and_columns(store):
    found = read(store.cube("c"))
    assert "Cube c, version 1" in found.text
    assert found.rows[1][:7] == ["cells", "seed", "L", "P (2)", f"{EVIL}, L", "2", "2"]
    assert found.rows[2][:5] == ["more", "enrichment", "L", "", ""]
    assert ["cells", EVIL, "string", "index"] in found.rows
    assert ["cells", "P", "string", "partition"] in found.rows


def test_a_table_shows_its_columns(store):
    found = read(store.table("t"))
    assert "Table t, version 1" in found.text
    assert found.rows[1][:2] == ["t", "table"]
    assert found.rows[-1] == ["id", "signed integer"]


def test_a_query_shows_its_funnel(store):
    cube = store.cube("c")
    found = read(cube.query(["w"], f"`{EVIL}` = '{EVIL[:-1]}' and P = 'a'"))
    head, cells, more = found.rows
    assert head[:2] == ["dataset", "join"]
    assert head[-3:] == ["rows", "size", "where"]
    assert cells[0] == "cells"
    assert EVIL in cells[-1]
    assert more[0] == "more"
    assert dict(zip(head, cells, strict=True))["partitions"] == "1"
    assert "Not read: more" in read(cube.query(["P"])).text


def test_elsewhere_there_is_text(store):
    cube = store.cube("c")
    assert repr(store) == f"Store({store.url!r})"
    assert repr(cube) == "Cube('c', version=1)"
    assert repr(store.table("t")) == "Table('t', version=1)"
    assert "cells: files" in repr(cube.query(["P"]))


def test_history(store):
    store.cube("c").delete("L = 1", datasets=["cells"])
    history = store.cube("c").history()
    assert [entry["version"] for entry in history] == [2, 1]
    rows = read(history).rows
    assert rows[0] == ["version", "time", "change", "by", "rows", "files"]
    assert [row[0] for row in rows[1:]] == ["2", "1", ""]
    assert rows[2][2:] == ["rebuild cells", "Python", "+2", "+2"]
    assert store.cube("c").history(limit=1) == history[:1]
