"""Writes or reads cubes with Kartothek 5.3.0; runs in an environment of its own (Python 3.8)."""

import json
import sys

import pandas as pd
from kartothek.api.cube import build_cube, extend_cube, query_cube
from kartothek.api.discover import discover_cube
from kartothek.core.cube.cube import Cube
from storefact import get_store_from_url

step, folder, *names = sys.argv[1:]
store = get_store_from_url("hfs://" + folder)
answer = {}
for number, name in enumerate(names):
    if step == "build":
        cube = Cube(dimension_columns=["id"], partition_columns=["p"], uuid_prefix=name)
        frame = pd.DataFrame({"id": [0, 1, 2], "p": [0, 1, 0], "v": [number] * 3})
        build_cube(data={"seed": frame}, cube=cube, store=store)
    elif step == "extend":
        cube, _ = discover_cube(name, store)
        frame = pd.DataFrame({"id": [0, 1, 2], "p": [0, 1, 0], "late": [7, 8, 9]})
        extend_cube(data={"late": frame}, cube=cube, store=store)
    else:
        cube, datasets = discover_cube(name, store)
        (frame,) = query_cube(cube, store)
        rows = frame.sort_values("id").drop(columns="p").to_dict("records")
        answer[name] = {"datasets": sorted(datasets), "rows": rows}
print(json.dumps(answer, default=float))
