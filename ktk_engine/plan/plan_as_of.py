"""Plans which cells may be the newest ones of events: one plan for each dataset.

See docs/design/reading.md, As of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import pyarrow as pa

from ktk_engine.conditions.condition import Condition, conjuncts
from ktk_engine.conditions.parameters import BoundText
from ktk_engine.cube.discovery import visible_columns
from ktk_engine.errors import QueryError
from ktk_engine.formatting import counted
from ktk_engine.plan.cube_query import CubeQuery, check_known, listed_names, row_condition
from ktk_engine.plan.events import Events, read_events
from ktk_engine.plan.explain import explain
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.plan_cube import LoadedCube
from ktk_engine.types.identifier import find_name


@dataclass(frozen=True)
class AsOfQuery:
    """A question for the newest cells of events; `resolve_as_of` checks it against a cube."""

    on: Sequence[str]  # keys, of events and cells
    time: str  # a column of both
    within: timedelta | str | int | None = None  # the largest age of a cell; None: any
    columns: Sequence[str] | None = None  # what cells give; None: all payload
    where: str | BoundText | Condition | None = None  # on rows of the cube


@dataclass(frozen=True)
class NewestCells:
    """How the cells of one dataset are read that may be the newest ones of events."""

    dataset: str
    plan: Plan
    keys: tuple[str, ...]
    time: str | None  # None: the dataset has no time, so that keys alone decide
    others: tuple[str, ...]  # what else addresses a cell: two newest cells may differ in it
    columns: tuple[str, ...]  # that it gives


@dataclass(frozen=True)
class ResolvedAsOf:
    """A question that can be answered, with its events."""

    cube: LoadedCube
    on: tuple[str, ...]
    time: str
    columns: tuple[str, ...]
    condition: Condition
    events: Events

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer: those of the events as they are, then those of the cells."""
        known = self.cube.schema
        return pa.schema([*self.events.rows.schema, *map(known.field, self.columns)])

    def slice(self, start: int, count: int) -> ResolvedAsOf:
        """The same question for some of the events."""
        return replace(self, events=self.events.slice(start, count))

    def plans(self) -> tuple[NewestCells, ...]:
        """Plan for each dataset that gives columns, in the order of the cube's columns."""
        found, seed = [], self.cube.specification.seed_dataset
        conditions = self.events.conditions(self.cube.schema, self.time)
        for name in sorted(self.cube.snapshots, key=lambda name: (name != seed, name)):
            own = set(visible_columns(self.cube.snapshots[name])) - self._shared
            if columns := tuple(c for c in self.columns if c in own):
                found.append(self._plan(name, columns, conditions))
        return tuple(found)

    @property
    def _shared(self) -> frozenset[str]:
        return self.cube.specification.shared_columns

    def _plan(
        self, name: str, columns: tuple[str, ...], conditions: Mapping[str, Condition]
    ) -> NewestCells:
        specification, snapshot = self.cube.specification, self.cube.snapshots[name]
        dimensions = [c for c in specification.dimension_columns if c in snapshot.columns]
        within = [c for c in specification.partition_columns if c in snapshot.partition_keys]
        address = (*within, *dimensions)
        keys = tuple(c for c in self.on if c in address)
        time = self.time if self.time in address else None
        others = tuple(c for c in address if c not in (*keys, time))
        self._check_unique(name, [c for c in others if c in dimensions])
        met = (*keys, *((time,) if time else ()))
        # A condition on payload is judged for each cell of the cube, which may repeat rows.
        reduced = dimensions if self.condition.columns <= self._shared else None
        query = CubeQuery((*met, *others, *columns), self.condition, reduced)
        resolved = self.cube.resolved(query)
        matched = frozenset({name})
        every = (*resolved.conjuncts, *(conditions[c] for c in met if c in conditions))
        plan = self.cube.plan_resolved(replace(resolved, conjuncts=every, matched=matched))
        return NewestCells(name, plan, keys, time, others, columns)

    def _check_unique(self, name: str, dimensions: Sequence[str]) -> None:
        """Refuse a dataset that has a further dimension about which the condition says nothing."""
        said = frozenset[str]().union(*(part.columns for part in conjuncts(self.condition)))
        if free := [c for c in dimensions if c not in said]:
            met = ", ".join((*self.on, self.time))
            raise QueryError(
                f"Dataset {name} of cube {self.cube.specification.prefix} has the dimension "
                f"{', '.join(free)} besides {met}, so an event may have several newest cells. Add "
                "it to on, leave the columns of this dataset out of columns, or choose one value "
                "by where, which holds for all datasets."
            )


def resolve_as_of(cube: LoadedCube, query: AsOfQuery, rows: pa.Table) -> ResolvedAsOf:
    """Check a question and its events against a cube; see `read_events` for errors."""
    schema, specification = cube.schema, cube.specification
    what, shared = f"Cube {specification.prefix}", specification.shared_columns
    address = [*specification.dimension_columns, *specification.partition_columns]
    on = listed_names(f"cube {specification.prefix}", "on", query.on, address)
    time = find_name(query.time, address) if isinstance(query.time, str) else None
    if time is None or time in on or not set(on) <= set(address):
        raise QueryError(
            f"{what}: on and time must be different dimension or partition columns, but are "
            f"{', '.join(map(str, on))} and {query.time!r}. It has: {', '.join(address)}."
        )
    payload = [name for name in schema.names if name not in shared]
    columns = tuple(payload)
    if query.columns is not None:
        columns = listed_names(
            f"cube {specification.prefix}", "columns", query.columns, schema.names
        )
        if keys := [name for name in columns if name in shared]:
            raise QueryError(
                f"{what}: {', '.join(f'`{name}`' for name in keys)} in columns: keys and times of "
                "the answer are those of the events. Leave them out, and store a time that you "
                "want to see in a payload column."
            )
        check_known(what, columns, payload)
    for name in columns:
        if find_name(name, rows.schema.names) is not None:
            raise QueryError(
                f"{what}: the events and the cube both have the column `{name}`. Rename it in the "
                "events, or leave it out of columns."
            )
    condition = row_condition(what, query.where, schema)
    events = read_events(what, schema, rows, on, time, query.within)
    return ResolvedAsOf(cube, on, time, columns, condition, events)


def explain_as_of(resolved: ResolvedAsOf, plans: Sequence[NewestCells]) -> str:
    """Say for each dataset how it meets the events, and what pruning left of its files."""
    count = counted(resolved.events.rows.num_rows, "event")
    lines = [f"as of `{resolved.time}`, {count}"]
    for item in plans:
        how = f"newest by {item.time}" if item.time else "equal keys"
        keys = f" for {', '.join(item.keys)}" if item.keys else ""
        lines.append(f"{item.dataset}, {how}{keys}:")
        lines += [f"  {line}" for line in explain(item.plan).splitlines()]
    return "\n".join(lines)
