"""Deletes whole files of a dataset, where partition values alone say which rows go."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from ktk_engine.change.delete_rows import goes_whole
from ktk_engine.change.stage import Rewrite
from ktk_engine.conditions.condition import Condition, TrueCondition, conjuncts
from ktk_engine.conditions.parse import parse_condition
from ktk_engine.errors import ConditionError
from ktk_engine.spark.arrow_types import arrow_schema, spark_schema
from ktk_engine.sql.row_change import RowChange
from ktk_engine.write.affected_rows import stored_rows
from ktk_engine.write.write_result import RowChanges, WriteResult

_TIME_ZONE = "spark.sql.session.timeZone"


@dataclass(frozen=True)
class WholeFiles:
    """Files all of whose rows go.

    Attributes:
        files: rows of the dataset's table of files.
        conditions: why they go, as conjuncts.
    """

    files: pa.Table
    conditions: tuple[Condition, ...]

    def delete(self, rewrite: Rewrite) -> WriteResult | None:
        """Commit that they go; nothing is read. None if there are none."""
        if not self.files.num_rows:
            return None
        version = rewrite.write.state.version
        count = stored_rows(rewrite.scanner, rewrite.base, self.files, version)
        rows = arrow_schema(spark_schema(rewrite.base.schema)).empty_table()
        done = rewrite.put(rows, self.files, (self.conditions,))
        return replace(done, changes=RowChanges(deleted=count))


def find_whole_files(rewrite: Rewrite, change: RowChange) -> WholeFiles | None:
    """Find the files that a delete takes out as a whole.

    Args:
        rewrite: the dataset.
        change: any change.

    Returns:
        None where it does more than that, or where nobody can tell without Spark.
    """
    condition = _condition(rewrite, change)
    if condition is None:
        return None
    conditions = conjuncts(condition)
    files = rewrite.files(conditions)
    part = replace(rewrite.base, files=files)
    return WholeFiles(files, conditions) if goes_whole(part, condition) else None


def _condition(rewrite: Rewrite, change: RowChange) -> Condition | None:
    """What a delete asks of rows, if it is understood without Spark."""
    if change.verb != "delete":
        return None
    (clause,) = change.clauses
    if not clause.condition:
        return TrueCondition()
    schema, zone = rewrite.base.schema, rewrite.scanner.session.conf.get(_TIME_ZONE)
    try:
        return parse_condition(
            clause.condition, schema, qualifier=change.target, session_zone=str(zone)
        )
    except ConditionError:
        return None
