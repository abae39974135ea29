"""Carries out replacements of rows: in Arrow where it accepts them, else in Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pyarrow as pa

from ktk_engine.change.by_arrow import ByArrow, NotByArrowError, Reason, accepted
from ktk_engine.change.replacement import Replacement
from ktk_engine.change.stage import Stage
from ktk_engine.errors import DataError
from ktk_engine.gate.write_request import Conditions
from ktk_engine.messages import Message
from ktk_engine.types.refusal import WriteProblem, refusal
from ktk_engine.write.new_keys import find_keys
from ktk_engine.write.write_result import WriteResult

if TYPE_CHECKING:
    from ktk_engine.change.by_spark import BySpark
    from ktk_engine.spark.read.scan import Scanner

# They have the same methods, on tables and on frames.
Executor: TypeAlias = "ByArrow | BySpark"
T = TypeVar("T")


@dataclass(frozen=True)
class Staying:
    """Why unmatched rows stay, for messages."""

    reason: object  # the end of a sentence
    shown: Sequence[str]  # columns of the example, besides the cell's


def replace_rows(
    stage: Stage,
    scanner: Scanner,
    change: Replacement,
    conditions: Conditions,
    new_count: int,
    staying: Staying,
) -> WriteResult | None:
    """Carry out a replacement whose source is the stage's new rows.

    Every matched row fulfils the conditions; others may. The result counts a deletion and an
    insertion. Without keys and changes, it is None. Raises a `DataError` if a new row has the cell
    of a row that stays.
    """
    touched = stage.files(conditions)

    def carry_out(executor: Executor) -> WriteResult | None:
        new = executor.new
        reads = (conditions, *check_cells(executor, change, new, staying))
        whole = touched.num_rows and stage.goes_whole(change, touched)
        if not (change.keys or new_count or stage.changes_layout or whole):
            rows = executor.rows(touched, sorted(change.where.columns))
            if executor.first(executor.matched(change, rows, new)) is None:
                stage.left_alone(*reads)
                return None
        rows, before = executor.replaced(change, touched, new)
        return stage.commit(rows, executor.types, touched, reads, new_count, before)

    return by_either(stage, scanner, touched, change, carry_out)


def by_either(
    stage: Stage,
    scanner: Scanner,
    files: pa.Table,
    change: Replacement,
    carry_out: Callable[[Executor], T],
) -> T:
    """Carry out a change in Arrow if it accepts it, else in Spark, with the same result.

    If Arrow gives up on the way, all of `carry_out` runs again in Spark.
    """
    types = stage.types(files)
    try:
        return carry_out(accepted(stage, types, files, change))
    except NotByArrowError:
        return carry_out(in_spark(stage, scanner, types))


def in_spark(stage: Stage, scanner: Scanner, types: pa.Schema) -> BySpark:
    """Carry out any change in Spark; see `by_either`."""
    from ktk_engine.change.by_spark import BySpark

    return BySpark(stage, scanner, stage.new, types)


def check_cells(
    executor: Executor, change: Replacement, source: Any, staying: Staying
) -> list[Conditions]:
    """Refuse new rows with the cell of a row that stays; say what was read.

    Raises a `DataError` with an example.
    """
    stage = executor.stage
    cells = stage.cells
    if change.frees(cells):
        return []
    conditions = find_keys(executor.new, cells).conditions(stage.base)
    shown = dict.fromkeys([*cells, *staying.shown])
    names = dict.fromkeys([*shown, *change.keys, *sorted(change.where.columns)])
    stay = executor.rows(stage.files(conditions), list(names))
    if change.updated is None or not change.appends:
        stay = executor.unmatched(change, stay, source)
    example = executor.first(executor.matched(Replacement(cells), stay, executor.new))
    if example is not None:
        if isinstance(executor, ByArrow):
            raise NotByArrowError(Reason.CELL)
        values = (f"{name}={example[name]!r}" for name in shown)
        problem = WriteProblem(
            Message(
                f"New rows have cells ({', '.join(cells)}) of old rows that stay, ",
                staying.reason,
                ". Each cell of a cube may occur only once.",
            ),
            "Leave these rows out, or let them replace the old ones.",
            f"the old row {', '.join(values)}",
        )
        raise DataError(refusal(stage.target.uuid, [problem]))
    return [conditions]
