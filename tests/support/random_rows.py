"""Random rows of a small cube, as Python and as frames of every kind."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st

PARTITIONS = ("a b", "é=%", "x")
SCHEMAS = {
    "cells": pa.schema(
        [("p", pa.string()), ("d", pa.int64()), ("k", pa.date32()), ("v", pa.float64())]
    ),
    "more": pa.schema([("p", pa.string()), ("d", pa.int64()), ("a", pa.string())]),
    "flat": pa.schema([("d", pa.int64()), ("b", pa.uint64())]),
}
CELL = {"cells": ("p", "d"), "more": ("p", "d"), "flat": ("d",)}
_VALUES = {
    "p": st.sampled_from(PARTITIONS),
    "d": st.integers(0, 5),
    "k": st.sampled_from([date(1970, 1, 1), date(1999, 2, 3)]),
    "v": st.none() | st.sampled_from([0.5, -1.0, math.nan, math.inf]),
    "a": st.none() | st.sampled_from(["", "ü", "x/y"]),
    "b": st.none() | st.sampled_from([0, 2**64 - 1, 2**63]),
}
Cells = dict[tuple[Any, ...], dict[str, Any]]


def rows_of(dataset: str) -> st.SearchStrategy[Cells]:
    """Rows of a dataset, each cell once, by cell."""
    row = st.fixed_dictionaries({name: _VALUES[name] for name in SCHEMAS[dataset].names})
    cell = CELL[dataset]
    return st.lists(row, max_size=5, unique_by=lambda row: tuple(row[n] for n in cell)).map(
        lambda rows: {tuple(row[name] for name in cell): row for row in rows}
    )


def table_of(dataset: str, cells: Cells) -> pa.Table:
    """The rows as an Arrow table."""
    return pa.Table.from_pylist(list(cells.values()), SCHEMAS[dataset])


def frame_of(dataset: str, cells: Cells, kind: str) -> Any:
    """The rows as a frame of a kind."""
    table = table_of(dataset, cells)
    if kind == "table":
        return table
    if kind == "reader":
        return table.to_reader(2)
    if kind == "batches":
        return iter(table.to_batches(2) or [pa.RecordBatch.from_pylist([], SCHEMAS[dataset])])
    if kind == "stream":
        return _Stream(table)
    return table.to_pandas(types_mapper=pd.ArrowDtype)


KINDS = st.sampled_from(["table", "reader", "batches", "stream", "pandas"])


class _Stream:
    """What any library that knows Arrow has."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)
