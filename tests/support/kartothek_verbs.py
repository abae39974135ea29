"""Kartothek 5.3.0, asked by a test; runs in an environment of its own (Python 3.8).

Reads JSON lines from stdin, `["build", folder]` or `["ask", folder]`, and answers each with a
line: nothing, or the cells and payload that `query_cube` gives.
"""

import datetime
import json
import sys

import pandas as pd
from kartothek.api.cube import build_cube, query_cube
from kartothek.api.discover import discover_cube
from kartothek.core.cube.cube import Cube
from storefact import get_store_from_url

DAY = datetime.date(1970, 1, 1)
CELLS = pd.DataFrame(
    {"p": ["a b", "x", "x"], "d": [1, 2, 3], "k": [DAY, DAY, DAY], "v": [0.5, None, -1.0]}
)
MORE = pd.DataFrame({"p": ["x", "x"], "d": [3, 5], "a": ["ü", None]})


def build(folder):
    store = get_store_from_url("hfs://" + folder)
    cube = Cube(["d"], ["p"], "c", seed_dataset="cells", index_columns=["k"])
    build_cube({"cells": CELLS, "more": MORE}, cube, store)


def ask(folder):
    store = get_store_from_url("hfs://" + folder)
    cube, _ = discover_cube("c", store)
    rows = []
    for frame in query_cube(cube, store):
        frame = frame.astype(object).where(frame.notnull(), None)
        frame["k"] = frame["k"].map(lambda day: str(day)[:10])
        rows += frame[sorted(set(frame.columns) - {"b"})].to_dict("records")
    return rows


for line in sys.stdin:
    verb, folder = json.loads(line)
    answer = build(folder) if verb == "build" else ask(folder)
    print(json.dumps(answer, default=str), flush=True)
