"""Arrow and Spark carry out random changes of rows alike: rows, counts, refusals, stored types."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktk_engine.errors import KtkError
from ktk_engine.spark.frames import frame_of_table
from ktk_engine.spark.sql.sql_session import SqlSession
from tests.support.changes import WriteRequest, build
from tests.support.committed import snapshot_of
from tests.support.random_cubes import examples
from tests.support.spark import (
    MergeBy,
    Predicates,
    Reason,
    merge,
    replace_where,
    watch_executors,
)
from tests.support.stores import LocalStore

pytestmark = pytest.mark.usefixtures("few_rows")

# Stored, and as a model has them: some are narrower, of some Spark has no word.
STORED = pa.schema(
    {
        "P": pa.string(),
        "L": pa.int64(),
        "k": pa.string(),
        "i": pa.int16(),
        "v": pa.float64(),
        "d": pa.date32(),
        "m": pa.decimal128(10, 2),
        "u": pa.uint64(),
        "n": pa.struct({"x": pa.int64()}),
    }
)
GIVEN = {"i": pa.int32(), "m": pa.decimal128(5, 2), "u": pa.decimal128(20, 0)}
VALUES: dict[str, list[Any]] = {
    "P": ["a/b", "x=y", "ü", ""],
    "L": [0, 1, 2, 2**53 + 1],
    "k": [None, "", "'", "ä%"],
    "i": [None, -7, 7],
    "v": [None, math.nan, -0.0, 0.0, 1.5],
    "d": [None, date(1582, 10, 4), date(2024, 2, 29)],
    "m": [None, Decimal("-1.25"), Decimal("0.00"), Decimal("999.99")],
    "u": [None, 0, 2**64 - 1],
    "n": [None, {"x": None}, {"x": 1}],
}
TABLE = WriteRequest("t", partition_by=("P",), indexes=("k",), declared={"u": pa.uint64()})
CUBE = WriteRequest("t", "seed", "c", ("L",), ("P",), declared={"u": pa.uint64()})
KEYS = [("L",), ("P", "L"), ("k",), ("k", "d"), ("m",), ("u",), ("i", "P"), ("v",), ("n", "L")]
PREDICATES = [
    "P = 'a/b'",
    "L >= 2",
    "v > 1",
    "k is null",
    "u > 0 or not k = ''",
    "d < '2000-01-01'",
]
ROW = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES.items()})


@dataclass(frozen=True)
class Change:
    """One change of rows.

    Attributes:
        strategy: how new rows meet old ones.
        rows: the new rows.
        key: for strategies by key.
        updated: for merges; None for all.
        where: a predicate; empty for none.
        lacking: whether the rows lack a column.
    """

    strategy: str
    rows: list[dict[str, Any]]
    key: tuple[str, ...]
    updated: tuple[str, ...] | None
    where: str
    lacking: bool


CHANGES = st.builds(
    Change,
    st.sampled_from(["merge", "merge", "delete+insert", "replace_where"]),
    st.lists(ROW, max_size=5),
    st.sampled_from(KEYS),
    st.sampled_from([None, ("v", "n"), ("u", "m", "k", "i")]),
    st.sampled_from(["", "", *PREDICATES]),
    st.booleans(),
)


def once(rows: list[dict[str, Any]], address: tuple[str, ...]) -> list[dict[str, Any]]:
    """Of each cell the last row; all of them in a table."""
    if not address:
        return rows
    return list({tuple(row[name] for name in address): row for row in rows}.values())


def given_rows(change: Change) -> pa.Table:
    names = [name for name in STORED.names if not (change.lacking and name == "d")]
    fields = [
        STORED.field(name).with_type(GIVEN.get(name, STORED.field(name).type)) for name in names
    ]
    columns = [
        pa.array([row[f.name] for row in change.rows], STORED.field(f.name).type).cast(f.type)
        for f in fields
    ]
    return pa.table(columns, schema=pa.schema(fields))


def left(store: LocalStore, target: WriteRequest) -> list[Any]:
    """The rows, and the types that they have in files."""
    snapshot = snapshot_of(store, target.uuid)
    rows, types = Counter(), set()
    for key, label in zip(snapshot.files["key"].to_pylist(), snapshot.labels, strict=True):
        found = pq.ParquetFile(store.root / key).read()
        types.add(str(found.schema.remove_metadata()))
        rows.update((label.rpartition("/")[0], repr(row)) for row in found.to_pylist())
    return [rows, types, str(snapshot.schema), sorted(snapshot.indices)]


def done_by(write: Callable[[], Any]) -> Any:
    try:
        result = write()
    except KtkError as error:
        return type(error), str(error)
    return result and (result.changes, result.rewritten_files, result.rows, result.notes)


@pytest.fixture
def carried_out(sql, tmp_path_factory, monkeypatch):
    """Carries out a change in a store of its own; says what it left, and who has done it."""

    def run(
        target: WriteRequest, parts: list[pa.Table], change: Change, by_arrow: bool
    ) -> tuple[Any, list[bool]]:
        store = LocalStore(tmp_path_factory.mktemp("executors"))
        for part in parts:
            build(store, part, target, mode="append")
        scanner = SqlSession(sql.session, lambda name: store, sql.scratch).scanner(store)
        new = frame_of_table(sql.session, given_rows(change))
        predicates = Predicates([change.where] if change.where else [])

        def write() -> Any:
            if change.strategy == "replace_where":
                return replace_where(scanner, new, target, Predicates([change.where or "L >= 2"]))
            updated = change.updated if change.strategy == "merge" else None
            by = MergeBy(change.key, change.strategy, updated, predicates=predicates)
            return merge(scanner, new, target, by)

        with monkeypatch.context() as patch:
            here = watch_executors(patch, by_arrow)
            return [done_by(write), *left(store, target)], here

    return run


@pytest.mark.parametrize("target", [TABLE, CUBE], ids=["table", "cube"])
def test_executors_answer_alike(carried_out, target):
    address = ("P", "L") if target.cube else ()
    seen: Counter[bool] = Counter()

    @examples(6)
    @given(st.lists(st.lists(ROW, min_size=1, max_size=6), min_size=1, max_size=3), CHANGES)
    def check(parts: list[list[dict[str, Any]]], change: Change) -> None:
        tables = [pa.Table.from_pylist(once(part, address), STORED) for part in parts]
        found, here = carried_out(target, tables, change, by_arrow=True)
        wanted, _ = carried_out(target, tables, change, by_arrow=False)
        assert found == wanted
        for by_arrow in here:
            exact = change.strategy == "replace_where" or not {"v", "n"} & set(change.key)
            assert by_arrow <= exact
            seen[by_arrow] += 1

    check()
    assert seen[True], "Arrow carried out none of these changes"


@pytest.mark.parametrize("where", PREDICATES)
def test_conditions_are_true_for_the_same_rows(carried_out, where):
    rows = [
        {name: values[n % len(values)] for name, values in VALUES.items()} | {"L": n}
        for n in range(12)
    ]
    table, change = (
        pa.Table.from_pylist(rows, STORED),
        Change("delete+insert", [], ("L",), None, where, False),
    )
    change = replace(change, rows=[{**row, "k": "new"} for row in rows])
    found, here = carried_out(TABLE, [table], change, by_arrow=True)
    wanted, _ = carried_out(TABLE, [table], change, by_arrow=False)
    assert found == wanted
    assert here == [True]


def test_reasons_are_listed():
    assert {reason.name for reason in Reason} == {
        "CELL",
        "CLASS",
        "CONSTRAINTS",
        "FILES",
        "SIZE",
        "TYPES",
    }
