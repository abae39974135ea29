"""Rows that a query names or computes, read lazily in this process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from ktk_engine.conditions.condition import Condition, TrueCondition, conjunction
from ktk_engine.conditions.evaluate import evaluate
from ktk_engine.errors import LocalEngineError
from ktk_engine.local.answer import LocalEngine, plan_schema
from ktk_engine.local.join_run import MemoryBudget, default_memory_limit
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.statement.named_relations import KnownStores, Plannable

EVERY = TrueCondition()
# Compared rows are in memory in addition to what is read, and in several threads.
_SHARE = 4
_MOST_READS = 100  # queries that each read another one twice double them with each level
_LARGEST = 1024**3  # arrays of texts end at 2 GB


def _limit() -> int:
    return min(default_memory_limit() // _SHARE, _LARGEST)


class Rows(Protocol):
    """Rows of some columns, read on demand."""

    @property
    def schema(self) -> pa.Schema:
        """The columns, in the containers of their classes."""

    def read(
        self, names: Sequence[str], condition: Condition = EVERY, most: int | None = None
    ) -> pa.Table:
        """Give columns, at least one, of the rows that fulfil a condition, unordered.

        `most` limits their number to any of them. Raises a `LocalEngineError` if they exceed the
        memory limit or only Spark can give them.
        """

    def count(self, condition: Condition = EVERY) -> int:
        """Count the rows that fulfil a condition; raises like `read`."""


@dataclass(frozen=True)
class RowReader:
    """Reads plans in threads of this process."""

    stores: KnownStores
    check: Callable[[], None]  # called repeatedly; raises to stop reading
    plans: list[Plan] = field(default_factory=list)  # receives the plan of each read
    limit: int = field(default_factory=_limit)  # bytes that the rows of one relation may take
    _reads: Iterator[int] = field(default_factory=itertools.count)

    def read(
        self, relation: Plannable, names: Sequence[str], condition: Condition, most: int | None
    ) -> pa.Table:
        """Give columns of a relation's rows; with a low `most`, few files are opened."""
        engine, plan = self._planned(relation, names, condition, most)
        budget, batches = MemoryBudget(self.limit), []
        for batch in engine.batches(plan, names):
            budget.take(batch.nbytes)
            batches.append(batch)
            self.check()
        return pa.Table.from_batches(batches, plan_schema(plan, names))

    def count(self, relation: Plannable, condition: Condition) -> int:
        """Count a relation's rows."""
        engine, plan = self._planned(relation, [relation.least], condition)
        return engine.count(plan)

    def _planned(
        self,
        relation: Plannable,
        names: Sequence[str],
        condition: Condition,
        most: int | None = None,
    ) -> tuple[LocalEngine, Plan]:
        self.check()
        if next(self._reads) >= _MOST_READS:
            raise LocalEngineError("The query reads its relations too often for this process.")
        plan = replace(relation.plan(list(names), condition), limit=most)
        self.plans.append(plan)
        footers = self.stores.metadata(relation.store).footers
        return LocalEngine(relation.store, footers, self.limit, progress=self._go_on), plan

    def _go_on(self, done: int, total: int) -> None:
        self.check()


@dataclass(frozen=True)
class Stored:
    """The rows of a cube, dataset or table."""

    relation: Plannable
    reader: RowReader

    @property
    def schema(self) -> pa.Schema:
        """The relation's columns."""
        return self.relation.schema

    def read(
        self, names: Sequence[str], condition: Condition = EVERY, most: int | None = None
    ) -> pa.Table:
        """See `Rows`."""
        return self.reader.read(self.relation, names, condition, most)

    def count(self, condition: Condition = EVERY) -> int:
        """See `Rows`."""
        return self.reader.count(self.relation, condition)


@dataclass(frozen=True)
class Filtered:
    """The rows that fulfil a condition."""

    rows: Rows
    condition: Condition

    @property
    def schema(self) -> pa.Schema:
        """The same columns."""
        return self.rows.schema

    def read(
        self, names: Sequence[str], condition: Condition = EVERY, most: int | None = None
    ) -> pa.Table:
        """See `Rows`."""
        return self.rows.read(names, conjunction([self.condition, condition]), most)

    def count(self, condition: Condition = EVERY) -> int:
        """See `Rows`."""
        return self.rows.count(conjunction([self.condition, condition]))


@dataclass(frozen=True)
class Renamed:
    """Some columns of rows, under new names."""

    rows: Rows
    names: Mapping[str, str]  # new name -> old name

    @property
    def schema(self) -> pa.Schema:
        """The columns under their new names."""
        found = self.rows.schema
        return pa.schema([found.field(old).with_name(new) for new, old in self.names.items()])

    def read(
        self, names: Sequence[str], condition: Condition = EVERY, most: int | None = None
    ) -> pa.Table:
        """See `Rows`."""
        needed = list(dict.fromkeys([*names, *sorted(condition.columns)]))
        columns = list(dict.fromkeys(self.names[name] for name in needed))
        every = isinstance(condition, TrueCondition)
        stored = self.rows.read(columns, most=most if every else None)
        table = pa.table([stored[self.names[name]] for name in needed], needed)
        return _kept(table, condition, most).select(list(names))

    def count(self, condition: Condition = EVERY) -> int:
        """See `Rows`."""
        if isinstance(condition, TrueCondition):
            return self.rows.count()
        return int(self.read([next(iter(self.names))], condition).num_rows)


@dataclass(frozen=True)
class Limited:
    """Any `most` of the rows."""

    rows: Rows
    most: int

    @property
    def schema(self) -> pa.Schema:
        """The same columns."""
        return self.rows.schema

    def read(
        self, names: Sequence[str], condition: Condition = EVERY, most: int | None = None
    ) -> pa.Table:
        """See `Rows`."""
        needed = list(dict.fromkeys([*names, *sorted(condition.columns)]))
        first = self.rows.read(needed, most=self.most)
        return _kept(first, condition, most).select(list(names))

    def count(self, condition: Condition = EVERY) -> int:
        """See `Rows`."""
        if isinstance(condition, TrueCondition):
            return min(self.rows.count(), self.most)
        return int(self.read(self.schema.names[:1], condition).num_rows)


@dataclass(frozen=True)
class Computed:
    """Rows of a computation, which gives all of them."""

    schema: pa.Schema
    compute: Callable[[], pa.Table]

    def read(
        self, names: Sequence[str], condition: Condition = EVERY, most: int | None = None
    ) -> pa.Table:
        """See `Rows`."""
        return _kept(self.compute(), condition, most).select(list(names))

    def count(self, condition: Condition = EVERY) -> int:
        """See `Rows`."""
        return int(_kept(self.compute(), condition).num_rows)


def _kept(table: pa.Table, condition: Condition, most: int | None = None) -> pa.Table:
    if not isinstance(condition, TrueCondition):
        table = table.filter(evaluate(condition, table))
    return table if most is None else table.slice(0, most)
