"""Which old rows a write may touch: SQL predicates, or a window of event time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Protocol

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.conditions.condition import And, Condition, conjunction
from ktk_engine.conditions.literal import comparison
from ktk_engine.conditions.parse import parse_condition
from ktk_engine.errors import ConditionError, ConfigurationError
from ktk_engine.messages import Remedy
from ktk_engine.sql.dialect import Dialect
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.identifier import find_name
from ktk_engine.types.type_class import class_name

# The name of the table in dbt's own merge statements.
TABLE_ALIAS = "DBT_INTERNAL_DEST"


class RowFilter(Protocol):
    """Selects rows by their values."""

    @property
    def fix(self) -> object:
        """What to do about a new row that it does not cover: a text or a remedy."""

    @property
    def holds_from_the_start(self) -> bool:
        """Whether it also covers the rows of a dataset that is rebuilt."""

    def condition(self, schema: pa.Schema, dialect: Dialect) -> Condition:
        """Give it as a condition on the columns of a schema.

        Raises a `ConfigurationError` if it does not fit. `dialect` is that of its text.
        """


@dataclass(frozen=True)
class Predicates:
    """SQL predicates that all have to be true."""

    texts: Sequence[str]  # as in a WHERE; `DBT_INTERNAL_DEST` may qualify columns

    @property
    def fix(self) -> Remedy:
        """What to do about a new row that they do not cover."""
        return Remedy("fit_predicate")

    @property
    def holds_from_the_start(self) -> bool:
        """They say what an incremental run replaces; a first run gives everything."""
        return False

    def condition(self, schema: pa.Schema, dialect: Dialect) -> Condition:
        """See `RowFilter`."""
        return conjunction(self._parsed(text, schema, dialect) for text in self.texts)

    def _parsed(self, text: str, schema: pa.Schema, dialect: Dialect) -> Condition:
        try:
            return parse_condition(
                dialect.in_default(text), schema, qualifier=TABLE_ALIAS, dialect=dialect
            )
        except ConditionError as error:
            raise ConfigurationError(
                Remedy("predicate"), ": ", error, ". ", Remedy("plain_predicate")
            ) from error


EVERY_ROW = Predicates(())


@dataclass(frozen=True)
class EventWindow:
    """A span of event time: from `start` on, before `end`."""

    column: str
    start: datetime  # with a zone
    end: datetime  # likewise; the first instant after it

    @property
    def fix(self) -> Remedy:
        """What to do about a new row that it does not cover."""
        return Remedy("fit_window", column=self.column)

    @property
    def holds_from_the_start(self) -> bool:
        """The first batch is one of many, and must not have their rows."""
        return True

    def condition(self, schema: pa.Schema, dialect: Dialect) -> Condition:
        """See `RowFilter`; timestamps without a zone and dates are taken as UTC."""
        column = find_name(self.column, schema.names)
        if column is None:
            hint = did_you_mean(self.column, schema.names)
            raise ConfigurationError(
                f"event_time is `{self.column}`, which is not a column of the table.{hint} If "
                "the new rows have it, ",
                Remedy("rebuild"),
                ".",
            )
        type_ = schema.field(column).type
        start, end = (self._bound(type_, instant) for instant in (self.start, self.end))
        return And(
            (
                comparison(column, type_, ">=", start),
                comparison(column, type_, "<", end),
            )
        )

    def _bound(self, type_: pa.DataType, instant: datetime) -> datetime | date:
        instant = instant.astimezone(UTC)
        if pat.is_timestamp(type_):
            return instant if type_.tz else instant.replace(tzinfo=None)
        if not pat.is_date(type_):
            raise ConfigurationError(
                f"event_time is `{self.column}`, of class {class_name(type_)}: a batch needs a "
                "timestamp or a date."
            )
        if instant - datetime.combine(instant, datetime.min.time(), UTC) != timedelta(0):
            raise ConfigurationError(
                f"event_time is `{self.column}`, a date, but a batch starts or ends at {instant}: "
                "use a batch_size of day, month or year, or a timestamp column."
            )
        return instant.date()
