"""The files of a dataset that hold the rows which a write replaces, and those rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.errors import ConditionError
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.plan.known_files import KnownFiles
from ktk_engine.plan.overlay import whole_overlays
from ktk_engine.plan.plan_dataset import address_partitions, plan_dataset
from ktk_engine.plan.prune import prune
from ktk_engine.spark.join import run_plan
from ktk_engine.spark.merge_rows import distinct_keys, key_bounds
from ktk_engine.spark.scan import Scanner
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.condition import And, Condition, columns
from ktk_engine.types.literal import comparison, is_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAXIMUM_KEYS = 100_000


def affected_files(store: ObjectStore, base: Snapshot, conditions: Sequence[Condition]) -> pa.Table:
    """Find the files that have to be rewritten to replace the rows that fulfil all conditions.

    Args:
        store: where the dataset lives.
        base: the dataset.
        conditions: conjuncts on its columns.

    Returns:
        Rows of the dataset's table of files, in order of position. Where cells are overlaid,
        a row that goes must not bring back an older row of its cell: unless the older one
        fulfils the conditions as well, since they only ask for the cell, the files that may
        hold it are rewritten too.
    """
    cells = frozenset(cell_columns(base))
    if not cells:
        return prune(store, base, conditions, None, KnownFiles()).files
    within = address_partitions(base)
    files = prune(store, base, conditions, within, KnownFiles()).files
    if all(columns(condition) <= cells for condition in conditions):
        return files
    matching = pc.is_in(base.files["label"].combine_chunks(), files["label"].combine_chunks())
    return base.files.filter(whole_overlays(base, matching, within))


def cell_columns(base: Snapshot) -> tuple[str, ...]:
    """What addresses a cell of a cube's dataset: at most one row has each; empty for a table."""
    dimensions = base.dimension_columns
    return tuple(dict.fromkeys([*address_partitions(base), *dimensions])) if dimensions else ()


def rows_of(scanner: Scanner, base: Snapshot, files: pa.Table, version: int) -> DataFrame:
    """The rows of some files, of each cell the last; all columns of the dataset."""
    return run_plan(scanner, plan_dataset(replace(base, files=files), version))


def key_conditions(base: Snapshot, new: DataFrame, keys: Sequence[str]) -> list[Condition]:
    """What a row fulfils whose key is among the new rows; fewer conditions are safe.

    Args:
        base: the dataset.
        new: the new rows.
        keys: the key's columns.
    """
    distinct = distinct_keys(new, keys, MAXIMUM_KEYS + 1)
    many = distinct.num_rows > MAXIMUM_KEYS
    conditions = []
    for key in keys:
        type_ = base.schema.field(key).type
        try:
            if many:
                conditions.append(_between(key, type_, *key_bounds(new, key)))
            else:
                values = pc.unique(distinct[key]).drop_null().to_pylist()
                conditions.append(is_in(key, type_, values))
        except ConditionError:
            continue  # a class without literals prunes nothing
    return conditions


def _between(key: str, type_: pa.DataType, low: object, high: object) -> Condition:
    return And((comparison(key, type_, ">=", low), comparison(key, type_, "<=", high)))
