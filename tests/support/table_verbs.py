"""Random verbs on a plain table: the store and a list of rows in Python stay in step."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ktk_engine import Store
from ktk_engine.errors import DataError
from tests.support.committed import check
from tests.support.random_cubes import TIMES

PARTITIONS = ("a/b", "é=%", "")

EXAMPLES = 6 * TIMES
SCHEMA = pa.schema([("p", pa.string()), ("k", pa.uint64()), ("t", pa.string()), ("v", pa.int16())])
ROW = st.fixed_dictionaries(
    {
        "p": st.sampled_from(PARTITIONS),
        "k": st.none() | st.sampled_from([0, 1, 2, 2**64 - 1]),
        "t": st.none() | st.sampled_from(["", "ü", "'"]),
        "v": st.none() | st.integers(-3, 3),
    }
)
ROWS = st.lists(ROW, max_size=6)
Rows = list[dict[str, Any]]
WIDTHS = st.sampled_from([pa.int16(), pa.int64(), pa.int8()])


def table(rows: Rows, width: pa.DataType | None = None) -> pa.Table:
    schema = SCHEMA.set(3, pa.field("v", width or SCHEMA.field("v").type))
    return pa.Table.from_pylist(rows, schema)


def in_order(rows: Rows) -> list[str]:
    return sorted(repr([row[name] for name in SCHEMA.names]) for row in rows)


class TableVerbs(RuleBasedStateMachine):
    """A table with a partition column and an index."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.store = Store(Path(self.folder) / "s")
        self.rows: Rows = []
        self.versions: dict[int, Rows] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def committed(self, rows: Rows) -> None:
        self.rows = rows
        self.versions[self.store.table("t").version] = list(rows)

    @initialize(rows=ROWS)
    def make(self, rows):
        self.store.write_table("t", table(rows), partition_by=["p"], indexes=["k"])
        self.committed(rows)

    @rule(rows=ROWS, width=WIDTHS)
    def append(self, rows, width):
        if rows:
            self.store.write_table("t", iter(table(rows, width).to_batches(2)))
        self.committed([*self.rows, *rows])

    @rule(rows=ROWS)
    def overwrite(self, rows):
        self.store.write_table("t", table(rows).to_reader(), "overwrite")
        self.committed(rows)

    @rule(rows=ROWS, width=WIDTHS, key=st.sampled_from([["k"], ["k", "p"], ["t", "k"]]))
    def merge(self, rows, width, key):
        keys = [tuple(row[name] for name in key) for row in rows]
        whole = [item for item in keys if None not in item]
        if len(set(whole)) < len(whole):
            before = self.store.table("t").version
            with pytest.raises(DataError, match="There are several rows for one key"):
                self.store.write_table("t", table(rows, width), "merge", key=key)
            assert self.store.table("t").version == before
            return
        self.store.write_table("t", table(rows, width), "merge", key=key)
        kept = [row for row in self.rows if tuple(row[name] for name in key) not in whole]
        self.committed([*kept, *rows])

    @rule(
        where=st.sampled_from(
            [
                ("p = 'a/b'", lambda row: row["p"] == "a/b"),
                ("k > 1", lambda row: row["k"] is not None and row["k"] > 1),
                ("t = '' or v < 0", lambda row: row["t"] == "" or (row["v"] or 0) < 0),
                ("t is null", lambda row: row["t"] is None),
            ]
        )
    )
    def delete(self, where):
        text, holds = where
        self.store.table("t").delete(text)
        self.committed([row for row in self.rows if not holds(row)])

    @rule(target_size=st.sampled_from(["1GB", 1]))
    def compact(self, target_size):
        self.store.table("t").compact(target_size=target_size)
        self.committed(self.rows)

    @rule(column=st.sampled_from(["k", "t"]), drop=st.booleans())
    def index(self, column, drop):
        table = self.store.table("t")
        with warnings.catch_warnings(record=True, action="always") as said:
            changed = table.drop_index(column) if drop else table.index(column)
        assert bool(said) == (drop and changed.version == table.version)
        assert (column in changed._loaded.snapshot.with_index) != drop
        self.committed(self.rows)

    @rule(column=st.sampled_from(["k", "t", "v"]))
    def rename_there_and_back(self, column):
        table = self.store.table("t").alter(rename={column: "größer %"})
        found = [{**row, column: row["größer %"]} for row in table.query().to_arrow().to_pylist()]
        assert in_order(found) == in_order(self.rows)
        table.alter(rename={"größer %": column})
        self.committed(self.rows)

    @rule(width=WIDTHS)
    def empty_a_column(self, width):
        self.store.table("t").alter(drop=["v"])
        self.store.table("t").alter(add={"v": width})
        self.committed([{**row, "v": None} for row in self.rows])

    @rule(columns=st.sampled_from([(), ("p",)]))
    def repartition(self, columns):
        self.store.table("t").repartition(*columns)
        self.committed(self.rows)

    @rule()
    def copy(self):
        copied = self.store.table("t").copy_to(self.store, "copy")
        assert in_order(copied.query().to_arrow().to_pylist()) == in_order(self.rows)
        self.store.drop("copy")

    @invariant()
    def every_version_has_its_rows(self):
        for version, rows in self.versions.items():
            found = self.store.table("t", version=version).query().to_arrow(engine="local")
            assert in_order(found.to_pylist()) == in_order(rows), version
        if self.versions:
            assert check(self.store._store, "t").problems == ()
