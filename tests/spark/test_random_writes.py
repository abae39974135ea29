"""Random sequences of writes leave the rows that the same steps on a pandas frame leave."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ktk_engine.maintain.compact  # deep: patched
from ktk_engine.change.predicates import EVERY_ROW
from ktk_engine.errors import DataError
from ktk_engine.spark.frames import frame_of_table
from ktk_engine.spark.sql.sql_session import SqlSession
from tests.spark.shown import shown
from tests.support.changes import WriteRequest, build, compact, find_compaction
from tests.support.committed import resolve
from tests.support.random_cubes import examples
from tests.support.spark import MergeBy, Predicates, merge, replace_where, watch_executors
from tests.support.stores import LocalStore, tree

pytestmark = pytest.mark.usefixtures("few_rows")

TYPES = {
    "P": pa.string(),
    "L": pa.int64(),
    "k": pa.string(),
    "v": pa.float64(),
    "u": pa.decimal128(20, 0),  # how Spark has unsigned integers
    "n": pa.string(),
}
NAMES = list(TYPES)
VALUES: dict[str, list[Any]] = {
    "P": ["a/b", "50%", "x=y", "ü", ""],
    "L": [0, 1, 2, 2**53 + 1],
    "k": [None, "", "'", "ä%", "z"],
    "v": [None, math.nan, -0.0, 1.5, -2.0],
    "u": [None, Decimal(0), Decimal(2**64 - 1)],
    "n": [None],
}
VERBS = [  # appends overlay cells, and replacing single rows must not bring old ones back
    *("overwrite", "merge", "delete+insert", "replace_where", "compact", "rebuild"),
    *("append", "append", "append", "merge", "delete+insert", "replace_where", "replace_where"),
]
TABLE = WriteRequest("t", partition_by=("P",), indexes=("k",), declared={"u": pa.uint64()})
CUBE = WriteRequest("t", "seed", "c", ("L",), ("P",), buckets=4, declared={"u": pa.uint64()})

# Predicates in SQL and in Python, where null is never true and NaN is the largest number.
PREDICATES: dict[str, Callable[[pd.Series], bool]] = {
    "P = 'a/b'": lambda r: r.P == "a/b",
    "P in ('', 'ü') and L < 2": lambda r: r.P in ("", "ü") and r.L < 2,
    "L >= 2": lambda r: r.L >= 2,
    "v > 1": lambda r: r.v is not None and (math.isnan(r.v) or r.v > 1),
    "DBT_INTERNAL_DEST.k is null": lambda r: r.k is None,
    "u = 18446744073709551615 or not k = ''": lambda r: (
        r.u == 2**64 - 1 or (r.k is not None and r.k != "")
    ),
}


@dataclass(frozen=True)
class Step:
    """One write."""

    verb: str
    rows: pd.DataFrame
    key: tuple[str, ...]
    update: tuple[str, ...] | None
    predicate: str | None


@st.composite
def steps(draw, address: tuple[str, ...]) -> Step:
    verb = draw(st.sampled_from(VERBS))
    row = st.fixed_dictionaries({name: st.sampled_from(VALUES[name]) for name in NAMES})
    rows = frame(draw(st.lists(row, max_size=8)))
    if address:
        rows = rows.drop_duplicates(list(address))
    key = draw(st.sampled_from([address or ("L",), ("P", "L"), ("k",)]))
    if verb == "merge":
        unknown = rows[list(key)].isna().any(axis=1)
        rows = rows[unknown | ~rows.duplicated(list(key))]
    update = draw(st.sampled_from([None, ("v",), ("u", "k")])) if verb == "merge" else None
    predicate = draw(st.sampled_from([None, *PREDICATES]))
    if verb == "replace_where":
        predicate = predicate or "L >= 2"
        if draw(st.integers(0, 9)):  # else some rows may not fulfil it
            rows = rows[mask(rows, PREDICATES[predicate])]
    return Step(verb, rows.reset_index(drop=True), key, update, predicate)


def frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=NAMES, dtype=object)


def mask(rows: pd.DataFrame, test: Callable[[pd.Series], bool]) -> pd.Series:
    return pd.Series([bool(test(row)) for row in rows.itertuples()], rows.index, dtype=bool)


def together(*frames: pd.DataFrame) -> pd.DataFrame:
    return frame([row for part in frames for row in part.to_dict("records")])


def expected(old: pd.DataFrame, step: Step, address: tuple[str, ...]) -> pd.DataFrame | None:
    """What a step leaves; None if it has to be refused."""
    new = step.rows
    if step.verb == "compact":
        return old
    if step.verb == "rebuild":
        return new
    if step.verb == "append":
        both = together(old, new)
        return both.drop_duplicates(list(address), keep="last") if address else both
    if step.verb == "overwrite":
        return together(old[~old.P.isin(new.P)], new)
    covered = mask(old, PREDICATES[step.predicate] if step.predicate else lambda row: True)
    if step.verb == "replace_where":
        assert step.predicate is not None
        if not mask(new, PREDICATES[step.predicate]).all():
            return None
        return once(together(old[~covered], new), address)
    keys = {key for key in map(tuple, new[list(step.key)].to_numpy()) if None not in key}
    matched = covered & mask(old, lambda row: tuple(getattr(row, c) for c in step.key) in keys)
    if step.verb == "delete+insert":
        return once(together(old[~matched], new), address)
    return once(merged(old, new, step, matched), address)


def merged(old: pd.DataFrame, new: pd.DataFrame, step: Step, matched: pd.Series) -> pd.DataFrame:
    """Update matching rows, and insert the new rows that match none, as SQL's MERGE does."""
    by_key = {tuple(row[c] for c in step.key): row for row in new.to_dict("records")}
    updated, found = [], set()
    for row in old[matched].to_dict("records"):
        key = tuple(row[c] for c in step.key)
        found.add(key)
        updated.append(row | {c: by_key[key][c] for c in step.update or NAMES})
    inserted = [r for r in new.to_dict("records") if tuple(r[c] for c in step.key) not in found]
    return together(old[~matched], frame(updated), frame(inserted))


def once(rows: pd.DataFrame, address: tuple[str, ...]) -> pd.DataFrame | None:
    """Rows of a cube, refused if a cell occurs twice."""
    return None if address and rows.duplicated(list(address)).any() else rows


def write(sql: SqlSession, store: LocalStore, target: WriteRequest, step: Step) -> None:
    scanner = sql.scanner(store)
    columns = {
        name: pa.array(list(step.rows[name]), t, from_pandas=False) for name, t in TYPES.items()
    }
    new = frame_of_table(sql.session, pa.table(columns))
    predicates = Predicates([step.predicate]) if step.predicate else EVERY_ROW
    if step.verb == "compact":
        found = find_compaction(resolve(store, target.scope), target.uuid)
        if found.files.num_rows:
            compact(found, scanner=lambda: scanner)
    elif step.verb == "rebuild":
        build(store, new, target, full_refresh=True)
    elif step.verb == "append":
        build(store, new, target, mode="append")
    elif step.verb == "overwrite":
        build(store, new, target, mode="partitions")
    elif step.verb == "replace_where":
        replace_where(scanner, new, target, predicates)
    else:
        by = MergeBy(step.key, step.verb, step.update, predicates=predicates)
        merge(scanner, new, target, by)


@pytest.mark.parametrize(
    ("target", "in_memory"),
    [(TABLE, True), (TABLE, False), (CUBE, True), (CUBE, False)],
    ids=["table in memory", "table", "cube in memory", "cube"],
)
def test_random_writes(sql, tmp_path_factory, monkeypatch, target, in_memory):
    address = ("P", "L") if target.cube else ()
    if not in_memory:
        watch_executors(monkeypatch, by_arrow=False)
        monkeypatch.setattr(ktk_engine.maintain.compact, "IN_PROCESS_BYTES", 0)

    @examples(4)
    @given(first=steps(address), following=st.lists(steps(address), min_size=7, max_size=7))
    def check(first: Step, following: list[Step]) -> None:
        store = LocalStore(tmp_path_factory.mktemp("writes"))
        own = SqlSession(sql.session, lambda name: store, sql.scratch)
        content = first.rows
        write(own, store, target, Step("rebuild", content, (), None, None))
        for step in following:
            after = expected(content, step, address)
            if after is None:
                before = tree(store.root)
                with pytest.raises(DataError):
                    write(own, store, target, step)
                assert tree(store.root) == before
                continue
            write(own, store, target, step)
            found = own.sql(f"select {', '.join(NAMES)} from an.t").collect()
            assert shown(found) == shown(after.to_numpy().tolist()), step
            content = after

    check()
