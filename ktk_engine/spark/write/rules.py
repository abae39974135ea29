"""Rules that every row has to keep, as SQL expressions: who breaks one, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyspark  # noqa: F401
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F

from ktk_engine.errors import ConfigurationError
from ktk_engine.formatting import shortened
from ktk_engine.spark.compatibility import message_of
from ktk_engine.spark.session.session import expression, reading_stored_text
from ktk_engine.spark.write.aggregate import aggregate
from ktk_engine.sql.stored_text import stored_condition

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row


def check_rule(rows: DataFrame, rule: str) -> None:
    """Analyze a rule, a boolean SQL expression, without running it.

    Raises a `ConfigurationError` with Spark's error.
    """
    try:
        with reading_stored_text(rows.sparkSession):
            rows.where(_broken(rows, rule))
    except (AnalysisException, ParseException) as error:
        raise ConfigurationError(
            f"`{shortened(rule)}` is not a condition on a row: {message_of(error)}"
        ) from error


def count_broken(rows: DataFrame, rules: Sequence[str]) -> list[int]:
    """Count for each rule the rows for which it is false, in one job."""
    if not rules:
        return []
    with reading_stored_text(rows.sparkSession):
        counts = [F.count_if(_broken(rows, rule)) for rule in rules]
        return list(aggregate(rows, (), *counts).collect()[0])


def broken_row(rows: DataFrame, rule: str) -> Row | None:
    """A row for which a rule is false."""
    with reading_stored_text(rows.sparkSession):
        return rows.where(_broken(rows, rule)).first()


def _broken(rows: DataFrame, rule: str) -> Column:
    return ~expression(rows.sparkSession, stored_condition(rule))
