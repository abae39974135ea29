"""The examples in docstrings are true; each runs in a store of its own."""

from __future__ import annotations

import doctest

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import ktk_engine.duckdb
import ktk_engine.polars
from ktk_engine import Store
from ktk_engine.api.as_of import AsOf
from ktk_engine.api.cube import Cube
from ktk_engine.api.cube_or_table import CubeOrTable
from ktk_engine.api.prepared import Prepared
from ktk_engine.api.query import Query
from ktk_engine.api.table import Table

FACES = (
    *(Store, CubeOrTable, Cube, Table, Query, Prepared, AsOf),
    *(ktk_engine.duckdb, ktk_engine.polars),
)
FINDER = doctest.DocTestFinder(recurse=True)
FOUND = [
    example
    for face in FACES
    for example in FINDER.find(face, face.__name__, globs={})
    if example.examples
]
FLIGHTS = pa.table(
    {"origin": ["EWR", "JFK", "JFK"], "flight": [1, 2, 3], "dest": ["SFO", "LAX", "SFO"]}
)
WEATHER = pa.table({"origin": ["EWR", "JFK"], "flight": [1, 2], "gust": [31.0, 12.5]})


@pytest.mark.parametrize("example", FOUND, ids=lambda example: example.name)
def test_an_example(example, store):
    opened = Store.of(store)
    cube = opened.build(
        "trips",
        {"flights": FLIGHTS, "weather": WEATHER},
        seed="flights",
        dimension_columns=["flight"],
        partition_by=["origin"],
        indexes=["dest"],
    )
    opened.write_table("fares", pa.table({"flight": [1, 2], "fare": [99.0, 150.0]}))
    scans = vars(ktk_engine.polars if "polars" in example.name else ktk_engine.duckdb)
    names = {name: scans[name] for name in ("scan_cube", "scan_table")}
    known = {"pa": pa, "pl": pl, "duckdb": duckdb, "store": opened, "cube": cube}
    example.globs = {**known, **names}
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(example, out=said.append)
    assert not runner.failures, "".join(said)


def test_every_verb_has_one():
    have = {example.name.rpartition(".")[2] for example in FOUND}
    faces = (Store, CubeOrTable, Cube, Table)
    verbs = {name for face in faces for name in vars(face) if name.islower() and name[0] != "_"}
    properties = {n for face in faces for n, v in vars(face).items() if isinstance(v, property)}
    assert verbs - properties - have == {"of"}
