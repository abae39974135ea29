"""Cuts a large partition into ranges of its leading dimension, by the bounds of row groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.conditions.condition import (
    Comparison,
    Condition,
    IsNull,
    Or,
    TrueCondition,
    conjunction,
)
from ktk_engine.files.data_file import read_footer
from ktk_engine.files.footers import row_group_footers, statistics_of
from ktk_engine.log.snapshot import MINIMUM_PREFIX
from ktk_engine.merge.task import TaskFile
from ktk_engine.store.interface import ObjectStore


def ranges(
    store: ObjectStore, files: Sequence[TaskFile], column: pa.Field, most: int
) -> list[Condition]:
    """Cut the cells of some files into ranges of one column.

    Args:
        store: where the footers lie.
        files: files of one partition.
        column: the column, in the type of its class.
        most: about how many rows a range should have.

    Returns:
        Conditions of which each row fulfils exactly one: the last one takes null and NaN. One
        condition that is always true where no bounds are known.
    """
    schema = pa.schema([column])
    lows, rows = [], []
    for file in files:
        metadata, physical, _ = read_footer(store, file.key, file.digest)
        footers = [f for f in row_group_footers(metadata, physical, {column.name}) if f.rows]
        lows.append(statistics_of(footers, [column.name], schema)[MINIMUM_PREFIX + column.name])
        rows += [footer.rows for footer in footers]
    bounds = pa.concat_arrays([chunk for low in lows for chunk in low.chunks])
    if bounds.null_count or not len(bounds):
        return [TrueCondition()]
    order = pc.sort_indices(bounds.cast(pa.int8()) if pa.types.is_boolean(bounds.type) else bounds)
    cuts: list[pa.Scalar] = []
    gathered, previous = 0, bounds[order[0].as_py()]
    for position in order.to_pylist():
        low = bounds[position]
        if gathered >= most and low != previous:
            cuts.append(low)
            gathered, previous = 0, low
        gathered += rows[position]
    return _between(column.name, cuts)


def _between(column: str, cuts: Sequence[pa.Scalar]) -> list[Condition]:
    """The ranges that some ascending values separate."""
    if not cuts:
        return [TrueCondition()]
    found: list[Condition] = [Comparison(column, "<", cuts[0])]
    for low, high in pairwise(cuts):
        found.append(conjunction([Comparison(column, ">=", low), Comparison(column, "<", high)]))
    return [*found, Or((Comparison(column, ">=", cuts[-1]), IsNull(column)))]
