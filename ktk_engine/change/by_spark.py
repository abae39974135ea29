"""Carries out changes of any number of rows in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from ktk_engine.change.replacement import Replacement
from ktk_engine.change.stage import Stage
from ktk_engine.conditions.condition import TrueCondition
from ktk_engine.conditions.render import to_sql
from ktk_engine.spark.client.client import select_names
from ktk_engine.spark.read.plan_frame import rows_of
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.session.session import expression
from ktk_engine.spark.write.aggregate import count_rows
from ktk_engine.spark.write.changed_rows import DecidedRows, Sides
from ktk_engine.spark.write.keys import union_by_name
from ktk_engine.sql.row_change import Clause
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OLD, _NEW = "old", "new"


@dataclass(frozen=True)
class BySpark:
    """Rows of a change in Spark; see `ByArrow`."""

    stage: Stage
    scanner: Scanner
    new: DataFrame
    types: pa.Schema  # the columns as they are to be stored

    def rows(self, files: pa.Table, names: Sequence[str]) -> DataFrame:
        """Columns of the rows that readers see in some files."""
        stage = self.stage
        rows = rows_of(self.scanner, stage.base, files, stage.write.state.version)
        return select_names(rows, names)

    def matched(self, change: Replacement, rows: DataFrame, source: DataFrame) -> DataFrame:
        """The rows that a change matches."""
        if not change.keys:
            return rows.where(_true(change))
        return _sides(change, rows, source).matched((), with_others=False).rows

    def unmatched(self, change: Replacement, rows: DataFrame, source: DataFrame) -> DataFrame:
        """The rows that a change does not match."""
        if not change.keys:
            return rows.where(~expression(rows.sparkSession, _true(change)))
        return _sides(change, rows, source).unmatched(()).rows

    def first(self, rows: DataFrame) -> dict[str, object] | None:
        """One of the rows; None if there is none."""
        found = rows.first()
        return found.asDict() if found is not None else None

    def replaced(
        self, change: Replacement, files: pa.Table, source: DataFrame
    ) -> tuple[DataFrame, int]:
        """What some files hold after a change, and how many rows they had."""
        stage = self.stage
        types, version = self.types, stage.write.state.version
        before = stage.known_count(files)
        if before is not None and stage.goes_whole(change, files):
            files = files.slice(0, 0)
        rows = rows_of(self.scanner, stage.base, files, version)
        before = count_rows(rows) if before is None else before
        values = {
            name: f"{_NEW}.{quote_identifier(name)}"
            for name in change.updated or ()
            if name in source.columns and name in types.names
        }
        if change.updated is None:
            rows = self.unmatched(change, rows, source).alias(_OLD)
            stay = DecidedRows(rows, (), _OLD, rows.columns)
        else:
            update = Clause("matched", "update", values=values)
            stay = _sides(change, rows, source).matched([update], with_others=True)
        if change.appends:
            return union_by_name(stay.results(types), self.new), before
        found = self.matched(change, rows, source)  # few of the old rows: only their keys move
        new = _sides(change, found, self.new).others()
        return union_by_name(stay.results(types), new), before


def _sides(change: Replacement, rows: DataFrame, source: DataFrame) -> Sides:
    texts = [f"{_OLD}.{name} = {_NEW}.{name}" for name in map(quote_identifier, change.keys)]
    if not isinstance(change.where, TrueCondition):
        texts.append(_true(change, _OLD))
    return Sides(rows, _OLD, source, _NEW, " and ".join(texts), once=True)


def _true(change: Replacement, qualifier: str | None = None) -> str:
    return f"coalesce({to_sql(change.where, qualifier)}, false)"
