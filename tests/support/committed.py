"""What is committed: scopes, the head of a log, snapshots, history, and what a check finds."""
# ruff: noqa: F401 - what is imported here, tests take from here

from __future__ import annotations

from ktk_engine.catalog.catalog import (
    Catalog,
    list_relations,
    list_scopes,
    read_view,
)
from ktk_engine.describe.history import read_history
from ktk_engine.describe.info import describe, list_contents
from ktk_engine.log import state as log_state
from ktk_engine.log.chain import read_entries, read_entry
from ktk_engine.log.computed import (
    Computed,
    DatasetVersion,
    read_computed,
    versions_read,
    write_computed,
)
from ktk_engine.log.dbt_node import DbtNode, Owner, builder_of
from ktk_engine.log.scope import LogScope, cube_scope, new_commit_id, scope_of
from ktk_engine.log.state import State
from ktk_engine.log.version import state_at
from ktk_engine.maintain.check import check
from ktk_engine.publish.delta.delta_log import read_log
from ktk_engine.snapshot.snapshot import PARTITION_PREFIX, Snapshot, concat_files, files_table
from ktk_engine.snapshot.stored_snapshot import read_snapshot
from tests.support.documents import digest
from tests.support.stores import ObjectStore


def resolve(store: ObjectStore, scope: LogScope) -> State:
    """The head of a scope: its version and its datasets."""
    return log_state.resolve(store, scope)


def version_of(store: ObjectStore, scope: LogScope) -> int:
    """The version of a scope's head; 0 if it has no log."""
    return resolve(store, scope).version


def snapshot_of(store: ObjectStore, uuid: str) -> Snapshot:
    """A dataset as its scope's head has it; a dataset of a cube is `<cube>++<dataset>`."""
    return resolve(store, scope_of(uuid)).snapshot(uuid)
