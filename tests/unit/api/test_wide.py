"""Tables of thousands of columns: what changes and queries cost, and what they give."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from ktk_engine import Store

CELLS = {"P": [1, 1, 1, 2, 2], "L": [1, 2, 3, 4, 5]}


def columns(prefix, count):
    return {f"{prefix}{number}": [1, 2, 3, 4, 5] for number in range(count)}


def built(folder, count):
    store = Store(folder)
    store.write_table("t", pa.table(columns("c", count)))
    enrichment = pa.table({**CELLS, **columns("e", count)})
    seed = pa.table(CELLS)
    store.build(
        "k", {"s": seed, "e": enrichment}, seed="s", dimension_columns=["L"], partition_by=["P"]
    )
    return store


CHANGES = {
    "delete": lambda store: store.table("t").delete("c1 = 3"),
    "delete cells": lambda store: store.cube("k").delete("e1 = 3", datasets=["e"]),
    "update": lambda store: store.cube("k").update(
        {"e": pa.table({"P": [1], "L": [1], **{n: [9] for n in columns("e", 1)}})}, "L = 1"
    ),
    "alter": lambda store: store.table("t").alter(add={"x": "double"}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_four_times_the_columns_take_less_than_nine_times_the_time(tmp_path, change):
    """About four times, and not sixteen; the shorter of two measurements each."""

    def seconds(count):
        best = float("inf")
        for turn in range(2):
            store = built(tmp_path / f"{count}-{turn}", count)
            began = time.process_time()
            change(store)
            best = min(best, time.process_time() - began)
        return best

    assert seconds(1_000) < 9 * max(seconds(250), 0.05)
