"""Merges rows into a dataset by a unique key; only files that can hold a key are rewritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.errors import ConditionError, ConfigurationError, DataError
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.log.state import State, resolve
from ktk_engine.operations.build import Written, build
from ktk_engine.operations.extension import Keeping, check_layout
from ktk_engine.operations.gate import pass_gate
from ktk_engine.operations.target import Target
from ktk_engine.plan.known_files import KnownFiles
from ktk_engine.plan.plan_dataset import plan_dataset
from ktk_engine.plan.prune import prune
from ktk_engine.spark.arrow_types import arrow_schema
from ktk_engine.spark.join import run_plan
from ktk_engine.spark.merge_rows import distinct_keys, key_bounds, merge_rows, repeated_key
from ktk_engine.spark.scan import Scanner, column
from ktk_engine.types.condition import And, Condition
from ktk_engine.types.literal import comparison, is_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAXIMUM_KEYS = 100_000


@dataclass(frozen=True)
class MergeBy:
    """How new rows meet old ones.

    Attributes:
        unique_key: columns by which a new row replaces an old one; null matches nothing.
        strategy: `merge` wants each key once; `delete+insert` drops every old row whose key is
            among the new ones, and takes all new rows.
        update_columns: columns that take the new value where a row is replaced; None means all.
            For `merge` only.
    """

    unique_key: tuple[str, ...]
    strategy: Literal["merge", "delete+insert"] = "merge"
    update_columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Merged:
    """The outcome of a merge.

    Attributes:
        written: what was committed.
        inserted: new rows that replaced none.
        replaced: old rows that were updated or deleted.
        files: how many of the dataset's files were rewritten.
        total_files: how many it had.
    """

    written: Written
    inserted: int
    replaced: int
    files: int
    total_files: int

    def __str__(self) -> str:
        return (
            f"{self.inserted:,} inserted, {self.replaced:,} replaced; "
            f"{self.files:,} of {self.total_files:,} files rewritten"
        )


def merge(
    scanner: Scanner,
    frame: DataFrame,
    target: Target,
    by: MergeBy,
    history: Mapping[str, str] | None = None,
    built_by: Mapping[str, str] | None = None,
) -> Merged:
    """Merge rows into a dataset, in one commit; one that does not exist yet is built.

    Partition values, secondary indices and statistics choose the files that can hold a key; the
    others stay as they are.

    Args:
        scanner: reads the files of the store.
        frame: the new rows; columns by name.
        target: the dataset and its layout.
        by: how new rows meet old ones.
        history: what the log says of this commit, for people.
        built_by: dataset id -> the dbt model that builds it, for messages.

    Raises:
        DataError: a key stands twice among the new rows of a `merge`; nothing was written.
        ConfigurationError: the key or an update column is missing, or the layout differs.
        TypeClassError: see `build`.
    """
    _check_columns(target, frame, by)
    frame = frame.persist()
    try:
        _check_unique(target, frame, by)
        state = resolve(scanner.store, target.scope)
        if target.uuid not in state.datasets:
            written = build(scanner.store, frame, target, history, False, built_by, state=state)
            return Merged(written, written.rows, 0, written.files, 0)
        check_layout(target, state.snapshot(target.uuid))
        return _merge_into(scanner, frame, target, by, state, history, built_by)
    finally:
        frame.unpersist()


def _merge_into(
    scanner: Scanner,
    frame: DataFrame,
    target: Target,
    by: MergeBy,
    state: State,
    history: Mapping[str, str] | None,
    built_by: Mapping[str, str] | None,
) -> Merged:
    """Rewrite the files that can hold a key, without the old rows of these keys."""
    base = state.snapshot(target.uuid)
    datasets = {target.scope.dataset_id(uuid): item for uuid, item in state.snapshots().items()}
    model = arrow_schema(frame.schema)
    passed = pass_gate(target, model, datasets, False, built_by, keeps_rows=True)
    names = [name for name in passed.committed.names if name in frame.columns]
    new = frame.select(*map(column, names))
    touched = _files_with_keys(scanner, base, new, by.unique_key, target)
    plan = plan_dataset(replace(base, files=touched), state.version)
    kept = [name for name in base.schema.names if name in passed.committed.names]
    old = run_plan(scanner, plan).select(*map(column, kept))  # columns may go (sync_all_columns)
    old_count, new_count = old.count(), new.count()
    updated = by.update_columns if by.strategy == "merge" else None
    rows = merge_rows(old, new, by.unique_key, updated)
    keeping = Keeping("files", frozenset(touched["label"].to_pylist()))
    written = build(scanner.store, rows, target, history, False, built_by, keeping, state)
    # The new files hold what stayed of the old rows, and the new rows.
    replaced = old_count + new_count - written.rows
    inserted = new_count - replaced if by.strategy == "merge" else new_count
    return Merged(written, inserted, replaced, touched.num_rows, base.files.num_rows)


def _files_with_keys(
    scanner: Scanner, base: Snapshot, new: DataFrame, keys: Sequence[str], target: Target
) -> pa.Table:
    """The files that can hold a row with one of the keys."""
    conditions = _key_conditions(base, new, keys)
    within = [name for name in target.partition_by if name in base.partition_keys]
    overlay = within if target.cube else None
    files: pa.Table = prune(scanner.store, base, conditions, overlay, KnownFiles()).files
    return files


def _key_conditions(base: Snapshot, new: DataFrame, keys: Sequence[str]) -> list[Condition]:
    """What a row's key columns fulfil if the row is to be replaced; fewer conditions are safe."""
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


def _check_columns(target: Target, frame: DataFrame, by: MergeBy) -> None:
    for what, names in (
        ("unique_key", by.unique_key),
        ("merge_update_columns", by.update_columns or ()),
    ):
        missing = [name for name in names if name not in frame.columns]
        if missing:
            raise ConfigurationError(
                f"Dataset {target.uuid}: {what} names {', '.join(missing)}, which the model lacks. "
                f"It has: {', '.join(frame.columns)}. Nothing was written."
            )
    if not by.unique_key:
        raise ConfigurationError(
            f"Dataset {target.uuid}: {by.strategy} needs a `unique_key`. Nothing was written."
        )


def _check_unique(target: Target, frame: DataFrame, by: MergeBy) -> None:
    """A merge cannot choose between two new rows of one key."""
    if by.strategy != "merge":
        return
    twice = repeated_key(frame, by.unique_key)
    if twice is not None:
        example = ", ".join(f"{key}={twice[key]!r}" for key in by.unique_key)
        raise DataError(
            f"Dataset {target.uuid} was refused (nothing was written):\n"
            f"- The model gives several rows for one unique_key ({', '.join(by.unique_key)}).\n"
            f"  Example: {example} stands {twice['count']} times\n"
            "  Fix: Keep one row a key in the model, or use incremental_strategy='delete+insert'."
        )
