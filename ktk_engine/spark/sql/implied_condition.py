"""What rows that pass SQL conditions and joins fulfill, so that reads can skip files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyspark  # noqa: F401
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from ktk_engine.conditions.condition import (
    Condition,
    FalseCondition,
    Or,
    TrueCondition,
    conjunction,
    conjuncts,
)
from ktk_engine.conditions.parse import (
    check_readable,
    parse_expression,
    read_condition,
    sql_conjuncts,
)
from ktk_engine.errors import ConditionError
from ktk_engine.plan.statement.usage import read_usage
from ktk_engine.spark.arrow_types import spark_schema
from ktk_engine.spark.client.client import client_of
from ktk_engine.spark.frames import empty_frame
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.session.session import dialect_of, expression
from ktk_engine.spark.sql.marked_frame import marked_frame
from ktk_engine.spark.write.changed_rows import where_any
from ktk_engine.sql.dialect import Dialect

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_MARKER = "__ktk_changed"


@dataclass(frozen=True)
class Narrowing:
    """Conditions on rows, by themselves or with those of a source."""

    alias: str  # name of the rows in conditions
    conditions: Sequence[str]  # a row passes if any is true; an empty one is true for every row
    source: DataFrame | None = None  # other rows, one of which has to pass together with the row
    source_alias: str = ""  # name of these in conditions

    def over(self, rows: DataFrame) -> DataFrame:
        """The rows to which the conditions apply."""
        named = rows.alias(self.alias)
        if self.source is None:
            return named
        return named.crossJoin(self.source.alias(self.source_alias))

    def is_deterministic(self, scanner: Scanner, schema: pa.Schema) -> bool:
        """Whether the same rows pass each time.

        Raises Spark's `AnalysisException` if a condition is invalid.
        """
        if not all(self.conditions):
            return True
        rows = self.over(empty_frame(scanner.session, spark_schema(schema)))
        counts = [
            F.count_if(expression(scanner.session, condition)) for condition in self.conditions
        ]
        try:  # an aggregate refuses random conditions, a filter only invalid ones
            return bool(rows.agg(*counts).schema)
        except AnalysisException:
            where_any(rows, self.conditions).schema  # noqa: B018 - asks
            return False


def implied_condition(scanner: Scanner, schema: pa.Schema, narrowing: Narrowing) -> Condition:
    """Give what each passing row fulfills, from the filters that Spark pushes down; nothing runs.

    What is not understood counts as true.
    """
    client = client_of(scanner.session)
    if not client.shows_plans:
        return _read(narrowing, schema, dialect_of(scanner.session))
    rows = narrowing.over(marked_frame(scanner.session, scanner.scratch, schema, _MARKER))
    passing = where_any(rows, narrowing.conditions)
    usage = read_usage(*client.optimized_plan(passing), _MARKER, schema)
    return FalseCondition() if usage is None else usage.condition


def _read(narrowing: Narrowing, schema: pa.Schema, dialect: Dialect) -> Condition:
    """What the texts of conditions say about the rows alone."""
    options = []
    for text in narrowing.conditions:
        parts = []
        for part in _conjuncts_of(text, dialect):
            with suppress(ConditionError):
                parts.append(
                    read_condition(part, schema, qualifier=narrowing.alias, dialect=dialect)
                )
        options.append(conjunction(parts))
    if any(not conjuncts(option) for option in options):
        return TrueCondition()
    return options[0] if len(options) == 1 else Or(tuple(options))


def _conjuncts_of(condition: str, dialect: Dialect) -> list[Any]:
    """Give the parts of a condition; none if it is unreadable."""
    try:
        check_readable(condition, dialect)
        return sql_conjuncts(parse_expression(condition))
    except ConditionError:
        return []
