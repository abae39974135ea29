"""All that a report of a cube or table shows, from documents, indices and listings alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.cube.discovery import discover_cube
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
    """What a report shows.

    Attributes:
        made: when, by the store's clock.
        store: the store's address.
        description: the cube or table.
        seed: id of the seed dataset, or of the table.
        partitions: partitions of each dataset by id, the seed dataset first.
        map: all datasets over the seed dataset's partitions; None where it has none.
        file_bytes: sizes of the files of each dataset.
        indices: how well each index chooses.
        columns: all columns.
        remarks: what to look after.
        history: commits, newest first.
        funnels: each query that was given, and its plan, or why there is none.
    """

    made: datetime
    store: str
    description: CubeDescription
    seed: str
    partitions: Mapping[str, Partitions]
    map: PartitionMap | None
    file_bytes: Mapping[str, pa.Array]
    indices: Sequence[IndexSelectivity]
    columns: Sequence[ColumnType]
    remarks: Sequence[Remark]
    history: Sequence[HistoryEntry]
    funnels: Mapping[str, Plan | str]


def make_report(
    store: ObjectStore, name: str, queries: Sequence[str] = (), orphans: Sequence[Orphan] = ()
) -> CubeReport:
    """Collect all that a report shows; no data file of ours is opened.

    Args:
        store: where the cube or table lives.
        name: its name.
        queries: conditions whose funnels are shown, such as `dest = 'SFO'`.
        orphans: datasets of the store that no model builds any more.

    Raises:
        DatasetNotFoundError: there is nothing of this name.
        ConsistencyError: the cube has no seed dataset yet.
    """
    state = find_scope(store, name)
    with state.reading():
        snapshots = state.snapshots_by_id()
        seed = name
        if state.scope.kind == "cube":
            seed = discover_cube(name, snapshots).seed_dataset
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
    """The plan of a condition; the datasets that it speaks of are read."""
    known = MetadataCache()
    try:
        if state.scope.kind != "cube":
            (snapshot,) = snapshots.values()
            return LoadedTable(state, snapshot, known).plan(where=query)
        return load_cube(state, (), None, known).plan(where=query)
    except KtkError as error:
        return error.message
