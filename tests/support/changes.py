"""Changes as tests make them: rows in, a commit out; and what clean-ups and tags do later."""
# ruff: noqa: F401 - what is imported here, tests take from here

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, cast

import pyarrow as pa
import pyarrow.compute as pc

from ktk_engine.gate.constraint import Constraint
from ktk_engine.gate.gate import check_scope
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.log.change.change_set import ChangeSet, DatasetChange
from ktk_engine.log.change.reads import Read, Reads
from ktk_engine.log.commit import Committed
from ktk_engine.log.commit import commit as commit_to_log
from ktk_engine.log.garbage import Retention
from ktk_engine.log.pending_commit import PendingCommit
from ktk_engine.log.stage.staged_store import StagedStore
from ktk_engine.log.transaction import ScopeTransaction
from ktk_engine.maintain.adoption.adopt import plan_adoption, run_adoption
from ktk_engine.maintain.change_metadata import comment_on
from ktk_engine.maintain.cleanup import plan_cleanup, run_cleanup
from ktk_engine.maintain.compact import compact
from ktk_engine.maintain.compactable import find_compaction, find_compactions
from ktk_engine.maintain.copy import plan_copy, run_copy
from ktk_engine.maintain.index import change_indexes
from ktk_engine.maintain.properties import Notes, note
from ktk_engine.maintain.remove import plan_removal, remove, run_removal
from ktk_engine.maintain.rename import rename
from ktk_engine.maintain.versions.restore import restore
from ktk_engine.maintain.versions.tag import delete_tag, tag_version
from ktk_engine.maintain.versions.undrop import undrop
from ktk_engine.publish.publish import publish, publish_head
from ktk_engine.publish.publish_datasets import (
    check_publishing,
    publish_datasets,
    stop_publishing,
)
from ktk_engine.publish.publish_stages import publish_stages
from ktk_engine.sql.statement import read_statement
from ktk_engine.warehouse.relations import Relations
from ktk_engine.warehouse.statements import run_statement
from ktk_engine.write import build as build_module
from ktk_engine.write.alter.alter_columns import alter_columns
from ktk_engine.write.alter.column_changes import ColumnChanges
from ktk_engine.write.build import build_from
from ktk_engine.write.retry import Source, retry_on_conflict, retry_write_on_conflict
from ktk_engine.write.staging import staged
from ktk_engine.write.write_result import RowChanges, WriteResult
from tests.support.committed import State, snapshot_of
from tests.support.queries import Condition
from tests.support.stores import LocalStore, ObjectStore, Warehouse

if TYPE_CHECKING:
    from ktk_engine.write.rows import Rows


def commit(base: State, change_set: ChangeSet) -> Committed:
    """Commit, and publish what was committed."""
    return commit_to_log(base, change_set, publish)


def build(
    store: ObjectStore,
    rows: Rows,
    target: WriteRequest,
    mode: Literal["append", "partitions", "files", "nothing"] | None = None,
    *,
    replaced: Collection[str] = (),
    reads: Sequence[Sequence[Condition]] = (),
    verb: Literal["replace", "compact"] = "replace",
    history: Mapping[str, str] | None = None,
    full_refresh: bool = False,
    state: State | None = None,
) -> WriteResult:
    """Write rows to a dataset, as one commit.

    Args:
        store: where.
        rows: a table or batches of Arrow, or a frame of Spark.
        target: the dataset and its layout.
        mode: what goes for the rows: None replaces all content, `append` nothing, `partitions`
            those that the rows have, `files` the files named in `replaced`, `nothing` all rows.
        replaced: labels of files that go.
        reads: conjunctions that say which rows of the dataset the new ones were computed from.
        verb: what the log calls a write with `files`.
        history: what the log says about the commit.
        full_refresh: whether column classes may change.
        state: what the rows were computed from; a commit since then is a conflict.
    """
    gone = None
    if replaced:
        known = (state.snapshot(target.uuid) if state else snapshot_of(store, target.uuid)).files
        named = pa.array(replaced, pa.string())
        gone = known.filter(pc.is_in(known["label"], value_set=named))
    target = replace(
        target,
        mode=mode,
        replaced=gone,
        looked_for=tuple(reads),
        verb=verb,
        history=history or {},
        full_refresh=full_refresh,
    )
    return build_module.build(store, rows, target, state)


def alter_table(store: LocalStore, sql: str) -> bool:
    """Run `alter table` on a store, which is the schema `s`; gives whether it was carried out."""
    relations = Relations(Warehouse(str(store.root.parent)))
    statement = read_statement(sql.replace("s.", f"{store.root.name}."))
    return run_statement(_without_spark, relations, statement) is not None


def run_sql(store: ObjectStore, sql: str) -> bool:
    """Run a statement on any store as the schema `s`; gives whether it was carried out."""
    warehouse = SimpleNamespace(find_schema=lambda name: store, create_schema=lambda name: store)
    relations = Relations(cast(Warehouse, warehouse))
    return run_statement(_without_spark, relations, read_statement(sql)) is not None


def _without_spark() -> Any:
    catalog = SimpleNamespace(tableExists=lambda name: False)
    return SimpleNamespace(
        current_schema="",
        session=SimpleNamespace(catalog=catalog),
        completed=lambda name: name,
        is_temporary=lambda name: False,
    )
