"""The places where a statement names relations that are planned for what it reads there.

See docs/design/statements.md, Plan relations for the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyspark  # noqa: F401
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ktk_engine.conditions.condition import TrueCondition
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.statement.named_relations import Plannable
from ktk_engine.plan.statement.query_text import QueryText
from ktk_engine.plan.statement.usage import Usage, read_usage
from ktk_engine.spark.arrow_types import spark_schema
from ktk_engine.spark.frames import empty_frame
from ktk_engine.spark.read.plan_frame import plan_frame
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.session.session import dialect_of
from ktk_engine.spark.sql.marked_frame import marked_frame
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MARKER = "__ktk_planned"

# Where a statement names a relation: the number of the reference, through views.
Place: TypeAlias = tuple[int, ...]


@dataclass
class PlannedPlaces:
    """What one statement reads at each of its places."""

    session: SparkSession
    scratch: Path
    scanner: Callable[[ObjectStore], Scanner]
    plans: list[Plan]  # gets the plans of the places
    _usages: dict[Place, Usage | None] = field(default_factory=dict)
    _marked: dict[Place, tuple[str, pa.Schema]] | None = None

    def marking(self) -> PlannedPlaces:
        """Give empty relations for the places, for Spark to optimize the statement; nothing runs.

        `learn` finds each of them in the optimized plan.
        """
        return replace(self, _marked={})

    def learn(self, marking: PlannedPlaces, plan: str, zone: str) -> None:
        """Learn what each place needs from the plan (JSON) of the statement bound with `marking`.

        The plan shows instants in the time zone `zone`; empty if unknown.
        """
        for place, (marker, schema) in (marking._marked or {}).items():
            self._usages[place] = read_usage(plan, zone, marker, schema)

    def learn_from_text(self, marking: PlannedPlaces, text: str, views: QueryText) -> None:
        """Learn what each place needs from the text of the statement bound with `marking`."""
        marked = marking._marked or {}
        usages = views.usages(text, dict(marked.values()), dialect_of(self.session))
        for place, (marker, _) in marked.items():
            if marker in usages:
                self._usages[place] = usages[marker]

    def knows(self, place: Place) -> bool:
        """Whether what the statement reads there is known, or being learned."""
        return self._marked is not None or place in self._usages

    def view(self, place: Place, relation: Plannable, name: str) -> tuple[str, str]:
        """Name the view for `frame` of a place, and what it depends on; empty if on each statement.

        Empty relations are the same for every statement: making one costs more than planning.
        """
        if self._marked is None:
            return name, ""
        marker = f"{_MARKER}_{len(self._marked)}"
        self._marked[place] = (marker, relation.schema)
        return f"{name} {marker}", spark_schema(relation.schema).json()

    def marker(self, place: Place) -> str:
        """The name of the empty relation of a place, after `view` of the place."""
        assert self._marked is not None
        return self._marked[place][0]

    def frame(self, place: Place, relation: Plannable) -> DataFrame:
        """Give the rows that a place needs, or all if unknown, after `view` of the same place.

        It has all columns in order; those that the statement does not need are null.
        """
        if self._marked is not None:
            marker, schema = self._marked[place]
            return marked_frame(self.session, self.scratch, schema, marker)
        if place not in self._usages:
            everything = Usage(frozenset(relation.schema.names), TrueCondition())
            return self._planned(relation, everything, compute_small=False)
        usage = self._usages[place]
        if usage is None:
            return empty_frame(self.session, spark_schema(relation.schema))
        return self._planned(relation, usage, compute_small=True)

    def _planned(self, relation: Plannable, usage: Usage, compute_small: bool) -> DataFrame:
        asked = [name for name in relation.schema.names if name in usage.columns]
        needed = [name for name in asked if name not in relation.refused] or [relation.least]
        plan = relation.plan(needed, usage.condition)
        plan = replace(plan, ignored=usage.ignored, partial_aggregate=usage.partial_aggregate)
        self.plans.append(plan)
        frame = plan_frame(
            self.scanner(relation.store),
            plan,
            compute_small=compute_small,
            aggregated=usage.aggregated,
        )
        schema = spark_schema(relation.schema)
        refused = {name: relation.refused[name] for name in asked if name in relation.refused}
        return _with_nulls(_with_errors(frame, refused), schema)


def _with_errors(frame: DataFrame, refused: Mapping[str, str]) -> DataFrame:
    """Add unreadable columns: reading one is an error."""
    errors = [F.raise_error(F.lit(why)).cast("string").alias(n) for n, why in refused.items()]
    return frame.select("*", *errors) if errors else frame


def _with_nulls(frame: DataFrame, schema: StructType) -> DataFrame:
    """Give all columns of a schema in order; those that a frame lacks are null.

    They share a single null, because each column made in Python costs several calls of Java.
    """
    given = set(frame.columns)
    missing = StructType([field for field in schema if field.name not in given])
    if missing.fields:
        frame = frame.select("*", F.lit(None).cast(missing).alias(_MARKER))
    names = [(field.name, quote_identifier(field.name)) for field in schema]
    return frame.select([text if name in given else f"{_MARKER}.{text}" for name, text in names])
