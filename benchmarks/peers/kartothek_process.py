"""Kartothek 5.3.0 in an environment of its own (Python 3.8): builds workload W, answers questions.

`build FOLDER ROWS ROWS_PER_VALUE VALUES ENRICHMENTS...` writes the cube. `ask FOLDER` reads
questions from stdin, a JSON line each, and prints the sums of their columns.
"""

import json
import sys

import numpy as np
import pandas as pd
from kartothek.api.cube import build_cube, query_cube
from kartothek.api.discover import discover_cube
from kartothek.core.cube.conditions import C
from kartothek.core.cube.cube import Cube
from storefact import get_store_from_url

PARTITIONS = 16


def build(folder, rows, per_value, values, enrichments):
    cube = Cube(["L"], ["P"], "w", seed_dataset="seed", index_columns=["k", "r"])
    store = get_store_from_url("hfs://" + folder)
    cells = np.arange(rows)
    shared = {"P": cells // (rows // PARTITIONS), "L": cells}
    own = {"v": np.random.rand(rows), "k": cells // per_value, "r": cells % values}
    data = {"seed": pd.DataFrame({**shared, **own})}
    for name in enrichments:
        data[name] = pd.DataFrame({**shared, name: np.random.rand(rows)})
    build_cube(data, cube, store)


def ask(folder):
    store = get_store_from_url("hfs://" + folder)
    for line in sys.stdin:
        question = json.loads(line)
        cube, _ = discover_cube("w", store)
        conditions = None
        if question["column"]:
            conditions = C(question["column"]) == question["value"]
        wanted = [c for c in question["columns"] if c not in ("P", "L")]
        frames = query_cube(cube, store, conditions=conditions, payload_columns=wanted)
        sums = [sum(float(frame[c].sum()) for frame in frames) for c in question["columns"]]
        print(json.dumps(sums), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(sys.argv[2], *map(int, sys.argv[3:6]), sys.argv[6:])
    else:
        ask(sys.argv[2])
