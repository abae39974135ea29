"""Answers tests that compare the cells of an enrichment with those of the seed dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from ktk_engine.local.sql.compare_rows import Unmatched, check_keys, has_match
from ktk_engine.local.sql.generic_test_sql import coverage_query, orphans_query
from ktk_engine.local.sql.rows import Computed, Rows

_Failures = Callable[[Rows, Rows, Sequence[str], float], Rows]


@dataclass(frozen=True)
class CellTest:
    """A recognised test."""

    rows: exp.Expression  # the tested relation as written after FROM
    seed: exp.Expression  # the seed dataset, likewise
    keys: tuple[str, ...]
    share: float  # the share that is allowed or required
    compute: _Failures  # gives the failures

    def failures(self, tested: Rows, seed: Rows) -> Rows:
        """Compute the failures from the rows of `rows` and `seed`.

        Raises a `LocalEngineError` if only Spark can compare the keys.
        """
        check_keys(tested, seed, [(key, key) for key in self.keys])
        return self.compute(tested, seed, self.keys, self.share)


def cell_test(select: exp.Select) -> CellTest | None:
    """Recognise a test: its query is generated again from what was read, and has to be equal."""
    where = select.args.get("where")
    for write, compute, name in (
        (orphans_query, _orphans, "share_of_orphans"),
        (coverage_query, _coverage, "coverage"),
    ):
        if where is None or name not in {item.name for item in where.find_all(exp.Column)}:
            continue
        seeds = [node for node in select.find_all(exp.Subquery, exp.Table) if _alias(node) == "s"]
        tested = [node for node in select.find_all(exp.Subquery) if _alias(node) == "e"]
        rows = tested[0].this.find(exp.From) if tested else None
        share = next(select.find_all(exp.Cast), None)
        if rows is None or len(seeds) != 1 or share is None or not share.this.is_number:
            continue
        seed = seeds[0].copy()
        seed.set("alias", None)
        equal = tuple(node.this.name for node in select.find_all(exp.NullSafeEQ, bfs=False))
        found = CellTest(rows.this, seed, equal, float(share.name), compute)
        try:
            said = write(_sql(found.rows), _sql(found.seed), found.keys, found.share)
        except ValueError:  # sqlglot cannot write X'' in Spark's dialect
            continue
        if sqlglot.parse_one(said, dialect="spark") == select:
            return found
    return None


def _alias(node: Any) -> str:
    return str(node.alias)


def _sql(node: Any) -> str:
    return str(node.sql(dialect="spark"))


def _orphans(tested: Rows, seed: Rows, keys: Sequence[str], at_most: float) -> Rows:
    fields = [tested.schema.field(key) for key in keys]
    schema = pa.schema([*fields, pa.field("share_of_orphans", pa.float64())])

    def compute() -> pa.Table:
        found = Unmatched(tested, seed, [(key, key) for key in keys], True).read(keys)
        share = found.num_rows / max(tested.count(), 1)
        if share <= at_most:
            return schema.empty_table()
        shares = pa.repeat(pa.scalar(share, pa.float64()), found.num_rows)
        return found.append_column("share_of_orphans", shares)

    return Computed(schema, compute)


def _coverage(tested: Rows, seed: Rows, keys: Sequence[str], at_least: float) -> Rows:
    names = {"cells": pa.int64(), "filled_cells": pa.int64()}
    schema = pa.schema({**names, "coverage": pa.float64(), "at_least": pa.float64()})

    def compute() -> pa.Table:
        filled = has_match(seed.read(keys), tested, [(key, key) for key in keys], True)
        cells, count = len(filled), int(filled.sum())
        coverage = count / cells if cells else 1.0
        row = {
            "cells": cells,
            "filled_cells": count,
            "coverage": coverage,
            "at_least": at_least,
        }
        return pa.Table.from_pylist([row] if coverage < at_least else [], schema=schema)

    return Computed(schema, compute)
