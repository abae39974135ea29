"""Rows, and the clauses of a statement that decide on them; see `RowChange`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyspark  # noqa: F401
from pyspark.sql import Window
from pyspark.sql import functions as F

from ktk_engine.spark.arrow_types import spark_type
from ktk_engine.spark.client.client import select_names
from ktk_engine.spark.frames import cast_by_name, cast_in, check_fields
from ktk_engine.spark.session.session import expression
from ktk_engine.spark.session.spark_job import spark_job
from ktk_engine.spark.write.aggregate import aggregate
from ktk_engine.sql.row_change import Clause
from ktk_engine.types.quote import quote_identifier
from ktk_engine.types.type_class import is_nested

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_ROW = "__ktk_row"
_CLAUSE = "__ktk_clause"
_MATCHED = "__ktk_matched"
_PAIRS, _HITS, _ROWS = "__ktk_pairs", "__ktk_hits", "__ktk_rows"


@dataclass(frozen=True)
class DecidedRows:
    """Rows of one kind, each with the clause that takes it."""

    rows: DataFrame  # stored rows, source rows, or pairs of both, by their names
    clauses: Sequence[Clause]
    stored: str  # name of the stored rows; empty for source rows alone
    columns: Collection[str] = ()  # of the stored rows
    repeated: bool = False  # a stored row may appear for several source rows

    def count(self) -> list[ClauseCount]:
        """Count the rows that each clause takes; one job, which reads no other columns."""
        if not self.clauses:
            return []
        rows = self.rows
        if self.repeated:
            rows = aggregate(
                rows,
                [_ROW],
                F.min(_CLAUSE).alias(_CLAUSE),
                F.count(_CLAUSE).alias(_HITS),
                F.count(F.lit(1)).alias(_PAIRS),
            )
        else:
            rows = rows.where(F.col(_CLAUSE).isNotNull()).select(
                _CLAUSE, F.lit(1).alias(_HITS), F.lit(1).alias(_PAIRS)
            )
        most = [F.max(name).alias(name) for name in (_HITS, _PAIRS)]
        with spark_job():
            counts = aggregate(rows, [_CLAUSE], F.count(F.lit(1)).alias(_ROWS), *most)
            found = counts.collect()
        return [ClauseCount(row[_CLAUSE], row[_ROWS], row[_HITS], row[_PAIRS]) for row in found]

    def repeated_row(self, names: Sequence[str]) -> dict[str, object]:
        """A stored row that several source rows change, with some of its columns."""
        shown = [F.first(_of(self.stored, name)).alias(name) for name in names]
        hits = aggregate(self.rows, [_ROW], F.count(_CLAUSE).alias(_HITS), *shown)
        with spark_job():
            found = hits.where(F.col(_HITS) > 1).drop(_ROW, _HITS).first()
        return found.asDict() if found is not None else {}

    def single(self) -> DecidedRows:
        """Each stored row once, with the source row for which a clause takes it, if any."""
        order = Window.partitionBy(_ROW).orderBy(F.col(_CLAUSE).asc_nulls_last())
        first = self.rows.withColumn(_PAIRS, F.row_number().over(order))
        return replace(self, rows=first.where(F.col(_PAIRS) == 1), repeated=False)

    def taken_by(self, wanted: Callable[[Clause], bool]) -> DecidedRows:
        """The rows that some of the clauses take."""
        numbers = [number for number, clause in enumerate(self.clauses) if wanted(clause)]
        return replace(self, rows=self.rows.where(F.col(_CLAUSE).isin(numbers)))

    def results(self, schema: pa.Schema) -> DataFrame:
        """The rows after the change, with the columns of `schema`: kept, changed and new ones."""
        rows = self.rows
        if self.clauses:
            gone = [n for n, clause in enumerate(self.clauses) if clause.action == "delete"]
            stays = ~F.col(_CLAUSE).isin(gone) if gone else F.lit(True)
            untouched = F.col(_CLAUSE).isNull() if self.stored else F.lit(False)
            rows = rows.where(untouched | (F.col(_CLAUSE).isNotNull() & stays))
        return rows.select(*[self._result(field).alias(field.name) for field in schema])

    def _result(self, field: pa.Field) -> Column:
        type_ = spark_type(field.type)
        kept = _of(self.stored, field.name) if field.name in self.columns else F.lit(None)
        kept = kept.cast(type_)
        chosen = None
        for number, clause in enumerate(self.clauses):
            text = (clause.values or {}).get(field.name)
            if clause.action == "delete" or text is None:
                continue
            is_this, value = F.col(_CLAUSE) == number, self._value(text, field)
            chosen = F.when(is_this, value) if chosen is None else chosen.when(is_this, value)
        return kept if chosen is None else chosen.otherwise(kept)

    def _value(self, text: str, field: pa.Field) -> Column:
        """An expression of a clause as a value of a column."""
        value, wanted = expression(self.rows.sparkSession, text), spark_type(field.type)
        cast = cast_in(self.rows.sparkSession)
        if not is_nested(field.type):
            return cast(value, wanted)
        given = self.rows.select(value.alias(field.name)).schema[field.name].dataType
        check_fields(given, wanted, field.name)
        return cast_by_name(value, given, wanted, cast)


@dataclass(frozen=True)
class ClauseCount:
    """How many rows a clause takes."""

    clause: int | None  # its number; None for rows that no clause takes
    rows: int
    hits: int  # maximum per row of source rows for which a clause takes it
    pairs: int  # maximum per row of source rows that match it


@dataclass(frozen=True)
class Sides:
    """Stored rows and those of a source."""

    stored: DataFrame
    target: str  # name of the stored rows in expressions
    source: DataFrame
    alias: str  # name of the source's rows in expressions
    on: str  # SQL condition that matches them
    once: bool  # no two source rows match one stored row

    def matched(self, clauses: Sequence[Clause], with_others: bool) -> DecidedRows:
        """The matching pairs; with others, also stored rows without a match, which no clause takes.

        Without clauses it gives the stored rows alone.
        """
        if not clauses:
            rows = self._stored() if with_others else self._join(self._stored(), "left_semi")
            return DecidedRows(rows, (), self.target, self.stored.columns)
        stored = self.stored
        if not self.once:
            stored = stored.withColumn(_ROW, F.monotonically_increasing_id())
        pairs = self._join(stored.alias(self.target), "left" if with_others else "inner")
        decided = _decided(pairs, clauses, F.col(_MATCHED))
        return DecidedRows(decided, clauses, self.target, self.stored.columns, not self.once)

    def unmatched(self, clauses: Sequence[Clause]) -> DecidedRows:
        """The stored rows that no source row matches."""
        rows = self._join(self._stored(), "left_anti")
        rows = _decided(rows, clauses) if clauses else rows
        return DecidedRows(rows, clauses, self.target, self.stored.columns)

    def new(self, clauses: Sequence[Clause]) -> DecidedRows:
        """The source rows that match no stored row."""
        return DecidedRows(_decided(self.others(), clauses), clauses, "")

    def others(self) -> DataFrame:
        """The source rows that match no stored row, unchanged."""
        source = self.source.alias(self.alias)
        return source.join(self._stored(), expression(source.sparkSession, self.on), "left_anti")

    def _stored(self) -> DataFrame:
        return self.stored.alias(self.target)

    def _join(self, stored: DataFrame, how: str) -> DataFrame:
        source = self.source.withColumn(_MATCHED, F.lit(True)).alias(self.alias)
        return stored.join(source, expression(source.sparkSession, self.on), how)


def decide(stored: DataFrame, target: str, clauses: Sequence[Clause]) -> DecidedRows:
    """Decide on stored rows without a source, as `delete from` and `update` do."""
    rows = _decided(stored.alias(target), clauses)
    return DecidedRows(rows, clauses, target, stored.columns)


def where_any(rows: DataFrame, conditions: Sequence[str]) -> DataFrame:
    """The rows for which any condition is true; an empty one is true for every row."""
    if not all(conditions):
        return rows
    parts = [expression(rows.sparkSession, condition) for condition in conditions]
    return rows.where(functools.reduce(lambda a, b: a | b, parts))


def named_columns(rows: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """Some columns under other names: new name -> name."""
    return select_names(rows, list(names.values())).toDF(*names)


def _decided(rows: DataFrame, clauses: Sequence[Clause], given: Column | None = None) -> DataFrame:
    """Note for each row the first clause whose condition is true for it."""
    number = F.lit(None).cast("int")
    for index, clause in reversed(list(enumerate(clauses))):
        true = expression(rows.sparkSession, clause.condition) if clause.condition else F.lit(True)
        number = F.when(true, F.lit(index)).otherwise(number)
    if given is not None:
        number = F.when(given, number)
    return rows.withColumn(_CLAUSE, number)


def _of(side: str, name: str) -> Column:
    return F.col(f"{quote_identifier(side)}.{quote_identifier(name)}")
