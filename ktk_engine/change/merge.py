"""Merges rows into a dataset by a unique key; only files that can hold a key are rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ktk_engine.change.predicates import EVERY_ROW, RowFilter
from ktk_engine.change.replace_rows import Staying, replace_rows
from ktk_engine.change.replacement import Replacement
from ktk_engine.change.stage import Stage, condition_of, start_stage
from ktk_engine.conditions.condition import Condition, conjuncts
from ktk_engine.errors import ConfigurationError, DataError
from ktk_engine.gate.check_columns import find_alike
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.state import State
from ktk_engine.messages import Message, Remedy
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.finding import raise_findings
from ktk_engine.types.identifier import name_finder
from ktk_engine.types.refusal import WriteProblem, refusal
from ktk_engine.types.schema import find_duplicates
from ktk_engine.write.build import build
from ktk_engine.write.new_keys import NewKeys, find_keys
from ktk_engine.write.retry import Source, retry_write_on_conflict, source_of
from ktk_engine.write.rows import as_stored, names_of_columns, schema_of
from ktk_engine.write.write_result import RowChanges, WriteResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ktk_engine.spark.read.scan import Scanner


@dataclass(frozen=True)
class MergeBy:
    """How new rows meet old ones."""

    unique_key: tuple[str, ...]  # a new row replaces old rows of its key; null matches nothing
    # `merge` needs distinct keys. `delete+insert` drops every old row with a new key, and takes all
    # new rows.
    strategy: Literal["merge", "delete+insert"] = "merge"
    # The columns that a merge updates; None: all that the new rows have.
    update_columns: tuple[str, ...] | None = None
    exclude_columns: tuple[str, ...] = ()  # columns not to update, instead
    predicates: RowFilter = EVERY_ROW  # which old rows may match at all


def merge(
    scanner: Scanner,
    rows: DataFrame | Source[DataFrame],
    target: WriteRequest,
    by: MergeBy,
) -> WriteResult:
    """Merge rows into a dataset in one commit; a dataset that does not exist yet is built.

    If another commit changes the files that can hold a key, or what the new rows were computed
    from, everything is computed again. Raises a `DataError` if a key of a `merge` is repeated or a
    new row would repeat the cell of a row that stays. For other errors see `build`.
    """

    from ktk_engine.spark.frames import persisted
    from ktk_engine.spark.session.session import dialect_of

    def write(state: State, new: DataFrame, target: WriteRequest) -> WriteResult:
        new, named = as_stored(new, replace(target, mode="files"), state)
        schema = schema_of(new)
        # The gate would say so, but looking for keys comes first, and Spark cannot choose them.
        if findings := [*find_duplicates(schema), *find_alike(schema)]:
            raise_findings(findings, f"dataset {named.uuid}", len(schema.names))
        known = spelled_by(by, named, new.columns, state)
        dialect = dialect_of(scanner.session)
        with persisted(new) as new:
            keys = find_keys(new, known.unique_key)
            check_unique(named, keys, known)
            if named.uuid not in state.datasets:
                condition_of(by.predicates, named, schema_of(new), dialect)
                return build(scanner.store, new, named, state)
            stage = start_stage(new, named, state, scanner.footers)
            check_known(named, stage.base, known.unique_key)
            predicate = condition_of(by.predicates, named, stage.base.schema, dialect)
            change = replacement(stage, known, predicate)
            conditions = [*keys.conditions(stage.base), *conjuncts(predicate)]
            shown = [*known.unique_key, *sorted(predicate.columns)]
            staying, count = Staying(Remedy("other_key"), shown), keys.row_count
            done = replace_rows(stage, scanner, change, conditions, count, staying)
            assert done is not None
            gone = done.changes.deleted
            updates = RowChanges(count - gone, updated=gone)
            return replace(done, changes=updates if by.strategy == "merge" else done.changes)

    return retry_write_on_conflict(scanner.store, target, source_of(rows), write)


def replacement(stage: Stage, by: MergeBy, predicate: Condition) -> Replacement:
    """The rows that a merge replaces, and the values that they take.

    A merge updates: a column that the model lacks keeps its value, and each of several old rows of
    one key stays a row. Deleting and inserting does neither.
    """
    whole = Replacement(by.unique_key, predicate)
    if by.strategy != "merge":
        return whole
    new = names_of_columns(stage.new)
    if by.update_columns is not None:
        return replace(whole, updated=by.update_columns, appends=False)
    once = bool(stage.cells) and set(stage.cells) <= set(by.unique_key)
    if once and set(stage.kept) <= set(new):
        return whole
    return replace(whole, updated=tuple(new), appends=False)


def spelled_by(by: MergeBy, target: WriteRequest, columns: Sequence[str], state: State) -> MergeBy:
    """Spell the columns of a merge as the new rows do, and turn exclusions into columns to update.

    Raises a `ConfigurationError` for an unknown column, or without a key.
    """
    known = state.snapshot(target.uuid).schema.names if target.uuid in state.datasets else []
    keys = _spelled(target, Remedy("key"), by.unique_key, columns)
    updated = _spelled(target, "merge_update_columns", by.update_columns or (), columns) or None
    both = tuple(dict.fromkeys([*columns, *known]))
    excluded = _spelled(target, "merge_exclude_columns", by.exclude_columns, both)
    if excluded:
        updated = tuple(name for name in columns if name not in excluded)
    if not keys:
        raise ConfigurationError(
            f"Dataset {target.uuid}: {by.strategy} needs a `",
            Remedy("key"),
            "`. Nothing was written.",
        )
    return replace(by, unique_key=keys, update_columns=updated, exclude_columns=())


def _spelled(
    target: WriteRequest, what: str | Remedy, names: Sequence[str], columns: Sequence[str]
) -> tuple[str, ...]:
    find = name_finder(columns)
    found = {name: find(name) for name in names}
    missing = [name for name in names if found[name] is None]
    if missing:
        hint = did_you_mean(missing[0], columns)
        raise ConfigurationError(
            f"Dataset {target.uuid}: ",
            what,
            f" names {', '.join(missing)}, which the rows lack.{hint} They have: "
            f"{', '.join(columns)}. Nothing was written.",
        )
    return tuple(dict.fromkeys(found[name] or name for name in names))


def check_known(target: WriteRequest, base: Snapshot, keys: Sequence[str]) -> None:
    """Refuse a key column that the table lacks: nothing could be found by it."""
    unknown = [name for name in keys if name not in base.schema.names]
    if unknown:
        raise ConfigurationError(
            f"Dataset {target.uuid}: ",
            Remedy("key"),
            f" names {', '.join(unknown)}, which the table lacks. It has: "
            f"{', '.join(base.schema.names)}. Nothing was written. ",
            Remedy("add_key", name=target.uuid),
        )


def check_unique(target: WriteRequest, keys: NewKeys, by: MergeBy) -> None:
    """Refuse two new rows of one key, between which a merge cannot choose."""
    if by.strategy != "merge":
        return
    twice = keys.repeated()
    if twice is not None:
        values, count = twice
        example = ", ".join(f"{key}={value!r}" for key, value in values.items())
        problem = WriteProblem(
            Message(
                "There are several rows for one ", Remedy("key"), f" ({', '.join(by.unique_key)})."
            ),
            Remedy("one_row_a_key"),
            f"{example} occurs {count} times",
        )
        raise DataError(refusal(target.uuid, [problem]))
