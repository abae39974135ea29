"""The contents of a report of a cube or table, from documents, indexes and listings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.describe.history import HistoryEntry, read_history
from ktk_engine.describe.info import CubeDescription, describe_state
from ktk_engine.errors import KtkError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.files.others.describe_files import describe_files
from ktk_engine.log.state import State
from ktk_engine.maintain.orphans import Orphan
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.plan_cube import load_cube
from ktk_engine.plan.plan_table import LoadedTable
from ktk_engine.report.health import Remark, remarks
from ktk_engine.report.index_selectivity import IndexSelectivity, index_selectivity
from ktk_engine.report.partition_map import PartitionMap, Partitions, partition_map, partitions_of
from ktk_engine.report.type_map import ColumnType, type_map
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.store.interface import ObjectStore

MAXIMUM_COMMITS = 500


@dataclass(frozen=True)
class CubeReport:
    """The contents of a report."""

    made: datetime  # by the store's clock
    store: str  # its address
    description: CubeDescription
    seed: str  # the seed dataset, or the table
    partitions: Mapping[str, Partitions]  # of each dataset, the seed dataset first
    map: PartitionMap | None  # all datasets over the seed dataset's partitions, if it has any
    file_bytes: Mapping[str, pa.Array]  # sizes of the files of each dataset
    indices: Sequence[IndexSelectivity]
    columns: Sequence[ColumnType]
    remarks: Sequence[Remark]
    history: Sequence[HistoryEntry]  # commits, newest first
    funnels: Mapping[str, Plan | str]  # the plan of each given query, or why there is none


def make_report(
    store: ObjectStore, name: str, queries: Sequence[str] = (), orphans: Sequence[Orphan] = ()
) -> CubeReport:
    """Collect the contents of a report without opening our data files.

    `queries` are conditions whose funnels are shown, such as `dest = 'SFO'`, and `orphans` are
    datasets that no model builds any more. Raises a `ConsistencyError` if the cube has no seed
    dataset yet.
    """
    state = find_scope(store, name)
    with state.reading():
        snapshots = state.snapshots_by_id()
        seed = name
        if state.scope.kind == "cube":
            seed = state.cube.seed_dataset
        order = sorted(snapshots, key=lambda dataset: (dataset != seed, dataset))
        described = describe_files(store, [snapshots[dataset] for dataset in order])
        snapshots = dict(zip(order, described, strict=True))
        files = {dataset: snapshot.files for dataset, snapshot in snapshots.items()}
        parts = {n: partitions_of(s.partition_keys, files[n]) for n, s in snapshots.items()}
        shown = partition_map(parts, seed) if parts[seed].keys else None
        return CubeReport(
            store.now(),
            store.url,
            describe_state(state),
            seed,
            parts,
            shown,
            {n: table["bytes"].combine_chunks() for n, table in files.items()},
            [i for n, snapshot in snapshots.items() for i in index_selectivity(store, n, snapshot)],
            type_map(state, snapshots),
            remarks(state, parts, shown, orphans),
            read_history(store, name, MAXIMUM_COMMITS),
            {query: _plan(state, snapshots, query) for query in queries},
        )


def _plan(state: State, snapshots: Mapping[str, Snapshot], query: str) -> Plan | str:
    """The plan of a condition, for the datasets whose columns it has."""
    cache = MetadataCache()
    try:
        if state.scope.kind != "cube":
            (snapshot,) = snapshots.values()
            return LoadedTable(state, snapshot, cache).plan(where=query)
        return load_cube(state, (), None, cache).plan(where=query)
    except KtkError as error:
        return error.message
