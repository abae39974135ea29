"""Plans queries of a plain table for Python programs and the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from ktk_engine.conditions.condition import Condition, conjuncts
from ktk_engine.errors import QueryError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.log.state import State
from ktk_engine.plan.cube_query import (
    CubeQuery,
    check_known,
    checked_limit,
    listed_names,
    row_condition,
)
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.plan_dataset import plan_rows
from ktk_engine.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class LoadedTable:
    """A table at one version, ready to be queried."""

    state: State  # the scope it was resolved from
    snapshot: Snapshot
    # What other queries know about its files.
    cache: MetadataCache = field(default_factory=MetadataCache, compare=False, repr=False)

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table, in order."""
        return self.snapshot.schema

    def plan(
        self, columns: Sequence[str] | None = None, where: str | Condition | None = None
    ) -> Plan:
        """Plan the reading of some columns of some rows."""
        return self.answer(CubeQuery(columns, where))

    def answer(self, query: CubeQuery) -> Plan:
        """Plan a query of this version; it may have columns, a condition and a limit.

        Raises a `QueryError` or a `ConditionError`, as `resolve_query` does.
        """
        where = row_condition(f"Table {self.snapshot.uuid}", query.where, self.schema)
        return self.prepared(query)(where)

    def prepared(self, query: CubeQuery) -> Callable[[Condition], Plan]:
        """Check all of a query but its condition, with which it is planned later."""
        name = self.snapshot.uuid
        if query.dimension_columns or query.partition_by or query.payload_columns:
            raise QueryError(f"{name} is a table: only cubes have dimensions and groups.")
        asked = self.schema.names if query.columns is None else query.columns
        names = listed_names(f"table {name}", "columns", asked, self.schema.names)
        check_known(f"Table {name}", names, self.schema.names, self.snapshot.left_out)
        limit = checked_limit(query.limit)

        def plan(where: Condition) -> Plan:
            store, version = self.state.store, self.state.version
            found = plan_rows(store, self.snapshot, version, names, conjuncts(where), self.cache)
            return replace(found, limit=limit)

        return plan
