"""Keeps the versions of rows (slowly changing dimensions, type 2): what dbt calls a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import md5
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ktk_engine.change.by_arrow import NotByArrowError, Reason
from ktk_engine.change.by_spark import BySpark
from ktk_engine.change.replace_rows import Executor, Staying, by_either, check_cells, in_spark
from ktk_engine.change.replacement import Replacement
from ktk_engine.change.stage import Stage, start_stage
from ktk_engine.change.versions import Versions
from ktk_engine.conditions.condition import Condition, IsNull, Or
from ktk_engine.conditions.literal import comparison
from ktk_engine.errors import (
    CommitConflictError,
    ConfigurationError,
    DataError,
    DatasetNotFoundError,
)
from ktk_engine.formatting import counted
from ktk_engine.gate.gate import validate_write
from ktk_engine.gate.spelling import spelled, stored_names
from ktk_engine.gate.write_request import Conditions, WriteRequest
from ktk_engine.log.state import State, resolve
from ktk_engine.messages import Message, Remedy
from ktk_engine.plan.key_conditions import counted_keys
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.spark.client.client import select_names
from ktk_engine.spark.frames import persisted
from ktk_engine.spark.read.collect import first_rows
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.write.version_rows import (
    CHANGE_TYPE,
    closed_versions,
    constant,
    new_versions,
    rows_with_value,
    with_new_ids,
    with_stored_times,
)
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.refusal import WriteProblem, refusal
from ktk_engine.write.build import build
from ktk_engine.write.new_keys import NewKeys, find_keys
from ktk_engine.write.retry import Source, retry_write_on_conflict
from ktk_engine.write.rows import as_stored
from ktk_engine.write.small_files import arrow_compares_unlike_spark
from ktk_engine.write.write_result import RowChanges, WriteResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHANGED_ROWS = 10_000
_SHOWN_COLUMNS = 6


def check_source(
    store: ObjectStore,
    source: pa.Schema,
    target: WriteRequest,
    by: Versions,
) -> None:
    """Check a snapshot's query against the stored versions before they are compared.

    Raises a `TypeClassError` for another class of a column, and what `validate_write` raises.
    """
    state = resolve(store, target.scope)
    if target.uuid not in state.datasets:
        return
    known, datasets = state.snapshot(target.uuid).schema, state.snapshots_by_id()
    target = replace(target, mode="files", full_refresh=False)
    names = stored_names(target, source.names, datasets)
    given = [item.with_name(names.get(item.name, item.name)) for item in source]
    there = {item.name for item in given}
    versions = by.spelled(known.names).names
    own = [known.field(n) for n in versions if n in known.names and n not in there]
    schema = pa.schema([*given, *own])
    validate_write(spelled(target, schema.names), schema, state)


def build_versions(
    store: ObjectStore,
    frame: DataFrame,
    target: WriteRequest,
    by: Versions,
) -> WriteResult:
    """Store the first version of each row in a dataset that does not exist yet.

    Raises a `DataError` for a row that occurs twice, a `CommitConflictError` if another run has
    stored versions meanwhile, and what `build` raises.
    """
    state = resolve(store, target.scope)
    if target.uuid in state.datasets:
        raise CommitConflictError(
            f"Dataset {target.uuid} was built by another run meanwhile. Nothing was written. Run "
            "it again."
        )
    with persisted(frame) as frame:
        _check_unique(target, frame, find_keys(frame, (by.scd_id,)), by)
        return build(store, frame, target, state)


def merge_versions(
    scanner: Scanner,
    changes: Source[DataFrame],
    target: WriteRequest,
    by: Versions,
) -> WriteResult | None:
    """Close versions that no longer hold and add those that do; gives None if nothing changes.

    `changes` gives the staging table of dbt's `snapshot_merge_sql`, which has the same result. If a
    row went and came back unchanged, its new version gets an id of its own, as dbt's records of
    deletions do. Raises a `DataError` if versions are ambiguous; for other errors see `build`.
    """

    def write(state: State, rows: DataFrame, target: WriteRequest) -> WriteResult | None:
        if target.uuid not in state.datasets:
            raise DatasetNotFoundError(
                f"Dataset {target.uuid} was removed while this run read it. Nothing was written. "
                "Run it again."
            )
        base = state.snapshot(target.uuid)
        versions = by.spelled(base.schema.names)
        _check_known(target, base, versions)
        rows, named = as_stored(rows, replace(target, mode="files"), state)
        with persisted(with_stored_times(rows, base.schema, versions.times)) as staged:
            stage = start_stage(new_versions(staged), named, state, scanner.footers)
            return _merge_into(stage, scanner, versions, staged)

    return retry_write_on_conflict(scanner.store, target, changes, write)


def _merge_into(
    stage: Stage, scanner: Scanner, by: Versions, staged: DataFrame
) -> WriteResult | None:
    """Rewrite the files that hold closed versions, and add the new ones."""
    closed = closed_versions(staged, by.scd_id, by.valid_to)
    few = _few_changes(staged, by)
    ended = _keys(closed, few, ("update", "delete"), (by.scd_id,))
    added = _keys(stage.new, few, ("insert",), (by.scd_id, by.valid_from))
    _check_unique(stage.target, closed, ended, by)
    _check_unique(stage.target, stage.new, added, by)
    if not (ended.row_count or added.row_count or stage.changes_layout):
        stage.left_alone()
        return None
    current = _current(stage, scanner, by)
    change = Replacement((by.scd_id,), current, (by.valid_to,))
    files = stage.files([*ended.conditions(stage.base), current])

    tell_apart = f"{by.scd_id} in dimension_columns tells them apart"
    staying = Staying(f"as all versions of a snapshot do; {tell_apart}", ())

    def carry_out(executor: Executor) -> WriteResult:
        in_arrow = few is not None and not isinstance(executor, BySpark)
        source = _in_arrow(executor, few, by) if in_arrow else closed
        touched, closed_count = _files_of(executor, change, source, files, ended, by)
        reads: list[Conditions] = [(current,)]
        if added.row_count:
            executor, read = _with_own_ids(executor, added, by)
            reads += [read, *check_cells(executor, change, source, staying)]
        rows, before = executor.replaced(change, touched, source)
        new_count = added.row_count
        done = stage.commit(rows, executor.types, touched, tuple(reads), new_count, before)
        return replace(done, changes=RowChanges(new_count, updated=closed_count))

    if few is None:
        return carry_out(in_spark(stage, scanner, stage.types(files)))
    return by_either(stage, scanner, files, change, carry_out)


def _few_changes(staged: DataFrame, by: Versions) -> pa.Table | None:
    """The changes, unless they are many rows or differ in letter case from the names here."""
    names = (CHANGE_TYPE, by.scd_id, by.valid_from, by.valid_to)
    if not {*names} <= {*staged.columns}:
        return None  # Spark ignores letter case
    return first_rows(select_names(staged, names), CHANGED_ROWS)


def _changed(changes: pa.Table, *kinds: str) -> pa.Table:
    """The rows with certain kinds of change."""
    return changes.filter(pc.is_in(changes[CHANGE_TYPE], value_set=pa.array(kinds)))


def _keys(
    rows: DataFrame, few: pa.Table | None, kinds: Sequence[str], names: Sequence[str]
) -> NewKeys:
    """The keys of changed rows; all known ones need no further job."""
    if few is None or any(
        arrow_compares_unlike_spark(few.schema.field(name).type) for name in names
    ):
        return find_keys(rows, names)
    return NewKeys(rows, *counted_keys(_changed(few, *kinds), names))


def _in_arrow(executor: Executor, few: pa.Table, by: Versions) -> pa.Table:
    """The versions to be closed and their ends, if Arrow can compare their ids."""
    closed, types = _changed(few, "update", "delete"), executor.types
    closed = closed.select([by.scd_id, by.valid_to])
    is_text = pat.is_string(types.field(by.scd_id).type)
    if not is_text or any(not types.field(f.name).type.equals(f.type) for f in closed.schema):
        raise NotByArrowError(Reason.TYPES)
    return closed


def _current(stage: Stage, scanner: Scanner, by: Versions) -> Condition:
    """The condition that only present versions fulfil."""
    open_ended = IsNull(by.valid_to)
    if not by.current:
        return open_ended
    type_ = stage.base.schema.field(by.valid_to).type
    value = constant(scanner.session, by.current, type_)
    if value is None:
        return open_ended
    return Or((open_ended, comparison(by.valid_to, type_, "=", value)))


def _with_own_ids(executor: Executor, added: NewKeys, by: Versions) -> tuple[Executor, Conditions]:
    """Give new versions their own id where an older version has theirs; say what was read."""
    stage, key = executor.stage, (by.scd_id, by.valid_from)
    conditions = added.conditions(stage.base)
    files = stage.files(conditions)
    if not files.num_rows:
        return executor, conditions
    taken = executor.matched(Replacement(key), executor.rows(files, key), executor.new)
    now = stage.store.now().isoformat()
    new_ids = with_new_ids if isinstance(executor, BySpark) else _with_new_ids
    new = new_ids(executor.new, taken, by.scd_id, now)
    return replace(executor, new=new), conditions


def _with_new_ids(new: pa.Table, taken: pa.Table, scd_id: str, now: str) -> pa.Table:
    """Do what Spark's `with_new_ids` does."""
    known = pc.unique(taken[scd_id])
    texts = (f"{own}|{now}".encode() for own in known.to_pylist())
    own_ids = [md5(text, usedforsecurity=False).hexdigest() for text in texts]
    places = pc.index_in(new[scd_id], value_set=known, skip_nulls=True)
    ids = pc.coalesce(pa.array(own_ids, pa.string()).take(places), new[scd_id])
    place = new.schema.get_field_index(scd_id)
    return new.set_column(place, new.schema.field(place), ids)


def _files_of(
    executor: Executor,
    change: Replacement,
    source: Any,
    files: pa.Table,
    ended: NewKeys,
    by: Versions,
) -> tuple[pa.Table, int]:
    """The files that can hold the versions to be closed, and the number of these versions.

    Ids are random texts, so that statistics of them prune little. The versions' cells prune more,
    so they come first.
    """
    stage, base = executor.stage, executor.stage.base
    if not files.num_rows:
        return files, 0
    cells = stage.cells  # conditions on cells alone add no files that overlay theirs
    names = tuple(dict.fromkeys(cells or (*base.partition_keys, *base.with_index, by.valid_from)))
    old = executor.rows(files, list(dict.fromkeys([*names, by.scd_id, by.valid_to])))
    found = find_keys(executor.matched(change, old, source), names)
    if found.row_count > ended.row_count:
        problem = WriteProblem(
            f"{found.row_count:,} current versions have the {by.scd_id} of "
            f"{counted(ended.row_count, 'changed row')}, so they are indistinguishable.",
            Message(
                "Give each row a ",
                Remedy("key"),
                f" ({by.unique_key}) without nulls, or remove the repeated versions from the "
                "snapshot.",
            ),
        )
        raise DataError(refusal(stage.target.uuid, [problem]))
    if found.many:
        return files, found.row_count
    known = [name for name in names if not found.values[name].null_count]
    places = replace(found, values=found.values.select(known)).conditions(base)
    conditions = [*ended.conditions(base), change.where]
    return stage.files(places if cells else [*conditions, *places]), found.row_count


def _check_known(target: WriteRequest, base: Snapshot, by: Versions) -> None:
    missing = [name for name in (by.scd_id, *by.times) if name not in base.schema.names]
    if missing:
        raise ConfigurationError(
            f"Dataset {target.uuid}: the snapshot lacks {', '.join(missing)}. It has: "
            f"{', '.join(base.schema.names)}. Nothing was written. Names in "
            "snapshot_meta_column_names cannot be changed later."
        )


def _check_unique(target: WriteRequest, rows: DataFrame, keys: NewKeys, by: Versions) -> None:
    """Refuse rows with one unique key: their versions would have one id."""
    twice = keys.repeated()
    if twice is None:
        return
    found, count = twice
    examples = rows_with_value(rows, by.scd_id, found[by.scd_id])
    shown = [name for name in examples.columns if name not in by.names][:_SHOWN_COLUMNS]
    row = examples.first()
    values = (f"{name}={row[name]!r}" for name in shown) if row is not None else ()
    example = ", ".join(values) or f"{by.scd_id}={found[by.scd_id]!r}"
    problem = WriteProblem(
        Message(
            "The snapshot's query gives several rows for one ",
            Remedy("key"),
            f" ({by.unique_key}).",
        ),
        Message(
            "Keep one row per key in the query, or add a column to ",
            Remedy("key"),
            " that tells the rows apart.",
        ),
        f"{example} occurs {count} times",
    )
    raise DataError(refusal(target.uuid, [problem]))
