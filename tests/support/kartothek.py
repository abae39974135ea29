"""Kartothek 5.3.0 and plateau 4.6 themselves, each in an environment of its own.

They write datasets, and read ours; cubes are Kartothek's alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from functools import cache
from pathlib import Path

import pytest

ORACLE = os.environ.get("KTK_ORACLE_PYTHON", "")
needs_kartothek = pytest.mark.skipif(
    not ORACLE, reason="KTK_ORACLE_PYTHON names no Python 3.8 with kartothek: see `make oracle`"
)

PLATEAU = os.environ.get("KTK_PLATEAU_PYTHON", "")
needs_plateau = pytest.mark.skipif(
    not PLATEAU, reason="KTK_PLATEAU_PYTHON names no Python with plateau: see `make oracle`"
)

PLACES = ["a/b", "50%", "x=y", "größe", " "]

_PREAMBLE = """
import json, sys
import pandas as pd
from kartothek.api.cube import *
from kartothek.api.discover import discover_cube
from kartothek.core.cube.cube import Cube
from kartothek.core.cube.conditions import C
from kartothek.api.dataset import *
from kartothek.core.dataset import DatasetMetadata
from storefact import get_store_from_url
store = get_store_from_url("hfs://" + sys.argv[1])
"""

_PLATEAU_PREAMBLE = """
import json, sys
import pandas as pd
from minimalkv import get_store_from_url
from plateau.api.dataset import *
store = lambda: get_store_from_url("hfs://" + sys.argv[1])
"""

_BUILD = """
places = json.loads(sys.argv[2])
cube = Cube(dimension_columns=["x"], partition_columns=["p", "q"], uuid_prefix="k",
            seed_dataset="cells", index_columns=["v"])
cells = pd.DataFrame({"p": places * 2, "q": [True, False] * len(places),
                      "x": range(2 * len(places)),
                      "v": ["%d%%" % i for i in range(2 * len(places))],
                      "day": pd.to_datetime("2020-01-01"), "w": [float("nan"), 1.5] * len(places)})
more = cells[["p", "q", "x"]].assign(u=range(len(cells)))
sums = pd.DataFrame({"x": range(5), "s": [None, "", "a/b", "c", "d"]})
build_cube({"cells": cells, "more": more, "sums": sums}, cube, store,
           partition_on={"sums": []}, metadata={"more": {"note": "kept"}})
"""

READ = """
cube, datasets = discover_cube(sys.argv[2], store)
frames = query_cube(cube, store)
rows = json.loads(pd.concat(frames).to_json(orient="records", date_format="iso")) if frames else []
answer = {
    "rows": sorted(rows, key=lambda row: json.dumps(row, sort_keys=True)),
    "datasets": sorted(datasets), "index_columns": sorted(cube.index_columns),
    "suppress_index_on": sorted(cube.suppress_index_on), "seed": cube.seed_dataset,
    "metadata": {name: dict(item.metadata) for name, item in datasets.items()},
}
print(json.dumps(answer))
"""


_asking = threading.Lock()
_MODULES = {
    ORACLE: [
        *(f"kartothek.{name}" for name in ("api.cube", "api.dataset", "api.discover", "io.eager")),
        "storefact",
    ],
    PLATEAU: ["plateau.api.dataset", "minimalkv"],
}


@cache
def _process(python):
    """The process that runs code, and ends with this one: importing Kartothek takes seconds."""
    script = str(Path(__file__).with_name("kartothek_process.py"))
    return subprocess.Popen(
        [python, "-I", "-W", "ignore", script, *_MODULES[python]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )


def run_in_oracle(code, *arguments, python=ORACLE):
    """Run a program in Kartothek's Python, or in plateau's, in a process of its own."""
    process = _process(python)
    with _asking:
        process.stdin.write(json.dumps([code, [str(item) for item in arguments]]) + "\n")
        process.stdin.flush()
        status, output, errors = json.loads(process.stdout.readline())
    return subprocess.CompletedProcess(code, status, output, errors)


def kartothek(store, code, *arguments):
    """Run code of Kartothek's users on a store; gives what it prints last, read as JSON."""
    return _answer(run_in_oracle(_PREAMBLE + code, store.root, *arguments))


def plateau(store, code, *arguments):
    """Run code of plateau's users on a store; gives what it prints last, read as JSON."""
    code = _PLATEAU_PREAMBLE + code
    return _answer(run_in_oracle(code, store.root, *arguments, python=PLATEAU))


def _answer(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout else None


def build_with_kartothek(store):
    """Let Kartothek write the cube `k`: two partition columns of awkward values, three datasets."""
    store.root.mkdir(exist_ok=True)
    kartothek(store, _BUILD, json.dumps(PLACES))


def read_with_kartothek(store, cube="k"):
    """What Kartothek finds of a cube: its rows, datasets and specification."""
    return kartothek(store, READ, cube)
