"""Plans queries of a cube: relevance, restriction, pruning, alignment.

SQL, Python and the command line share this one way. See docs/design/reading.md, Relevance and
restriction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from ktk_engine.conditions.condition import Condition, conjunction, conjuncts, null_rejecting
from ktk_engine.cube.consistency import check_readable
from ktk_engine.cube.discovery import discover_cube, visible_columns
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import ConsistencyError, DatasetNotFoundError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.log.state import State
from ktk_engine.plan.align import align
from ktk_engine.plan.cube_query import CubeQuery, ResolvedQuery, cube_schema, resolve_query
from ktk_engine.plan.overlay import is_overlaid
from ktk_engine.plan.plan import DatasetPlan, Join, Plan
from ktk_engine.plan.prune import prune
from ktk_engine.snapshot.snapshot import PARTITION_PREFIX, Snapshot

_ROW = "row"  # of a sketch: the file's number in its snapshot
_FEW_FILES = 10_000  # of a dataset whose partitions choose those of others
_ORDER: dict[Join, int] = {"seed": 0, "inner": 1, "left": 2}


@dataclass(frozen=True)
class LoadedCube:
    """A cube at one version, ready to be queried."""

    state: State  # the scope it was resolved from
    specification: CubeSpecification
    snapshots: dict[str, Snapshot]  # its datasets by id
    # What other queries know about its files.
    cache: MetadataCache = field(default_factory=MetadataCache, compare=False, repr=False)

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns of the virtual table, in order."""
        return cube_schema(self.specification, self.snapshots)

    @cached_property
    def payload(self) -> dict[str, frozenset[str]]:
        """The columns of each dataset that it shares with no other."""
        shared = self.specification.shared_columns
        return {n: frozenset(visible_columns(s)) - shared for n, s in self.snapshots.items()}

    def plan(
        self, columns: Sequence[str] | None = None, where: str | Condition | None = None
    ) -> Plan:
        """Plan the reading of some columns of some rows; see `answer` for other queries."""
        return self.answer(CubeQuery(columns, where))

    def answer(self, query: CubeQuery) -> Plan:
        """Plan a query of this version; see `CubeQuery` and `resolve_query`."""
        return self.plan_resolved(self.resolved(query))

    def prepared(self, query: CubeQuery) -> Callable[[Condition], Plan]:
        """Check a query, which is planned later with other conditions on the same columns."""
        whole = self.resolved(query)
        return lambda where: self.plan_resolved(replace(whole, conjuncts=conjuncts(where)))

    def resolved(self, query: CubeQuery) -> ResolvedQuery:
        """Check a query against this version."""
        return resolve_query(self.specification, self.snapshots, query, self.schema)

    def plan_resolved(self, query: ResolvedQuery) -> Plan:
        """Decide which files are read and how they are joined, for a query that is already checked.

        Opens none of our data files, and at most the footers of other programs' files, once.
        """
        cube, planned = self.specification, list[DatasetPlan]()
        done: set[Condition] = set()
        joins = {name: _join(self, name, query) for name in sorted(self.snapshots)}
        read = [(name, join) for name, join in joins.items() if join is not None]
        conditions = {name: _own_conjuncts(self, name, query, join) for name, join in read}
        among: list[pa.Table] = []  # of the datasets whose partitions restrict the others
        # Datasets with conditions come first: only their partitions matter for the others.
        for name, join in sorted(read, key=lambda item: (not conditions[item[0]], _ORDER[item[1]])):
            own = conditions[name]
            done.update(own)
            planned.append(_plan_dataset(self, name, own, query, join, among))
            if join != "left" and planned[-1].files.num_rows <= _FEW_FILES:
                among.append(planned[-1].files)
        planned.sort(key=lambda item: (_ORDER[item.join], item.dataset))
        aligned = [_with_files_to_open(item) for item in align(planned, cube.partition_columns)]
        left = conjunction(part for part in query.conjuncts if part not in done)
        order = (*query.dimensions, *cube.partition_columns)
        dropped = set(cube.dimension_columns) - set(query.dimensions)
        address = {*order, *query.partition_by}
        early = bool(dropped) and not (dropped - address) & left.columns
        if early:
            aligned[0] = _projected(aligned[0], address)
        return Plan(
            cube=cube.prefix,
            version=self.state.version,
            columns=query.columns,
            datasets=tuple(aligned),
            unread=tuple(name for name, join in joins.items() if join is None),
            condition=left,
            order_by=order,
            partition_by=query.partition_by,
            distinct=bool(dropped) and not early,
            limit=query.limit,
        )

    def only(self, datasets: Collection[str]) -> LoadedCube:
        """The cube as if it had only these datasets, the seed dataset among them.

        Raises a `DatasetNotFoundError`, or a `ConsistencyError` without the seed dataset.
        """
        datasets = listed_datasets(self, datasets)
        seed = self.specification.seed_dataset
        if seed not in datasets:
            raise ConsistencyError(
                f"Seed dataset {seed} of cube {self.specification.prefix} is missing in datasets: "
                "it says which cells exist."
            )
        chosen = {name: item for name, item in self.snapshots.items() if name in datasets}
        return replace(self, snapshots=chosen)


def _join(cube: LoadedCube, name: str, query: ResolvedQuery) -> Join | None:
    """How a dataset takes part, None if it gives neither a column nor a condition.

    Groups of its values restrict it and make its join inner. So does a condition that cannot be
    true where all its payload is null (decision 1), and a query of the cells that it has.
    """
    if name == cube.specification.seed_dataset:
        return "seed"
    payload = cube.payload[name]
    if not payload & query.needed:
        return None
    grouped = bool(payload.intersection(query.partition_by))
    restricted = grouped or name in query.matched
    restricted = restricted or any(
        part.columns & payload and null_rejecting(part, payload) for part in query.conjuncts
    )
    return "inner" if restricted else "left"


def _own_conjuncts(
    cube: LoadedCube, name: str, query: ResolvedQuery, join: Join
) -> list[Condition]:
    """The conjuncts that choose among a dataset's rows before the joins.

    A row without a match in a left join still counts: only conditions that the seed dataset checks
    as well may drop rows of such a dataset.
    """
    known = cube.snapshots[name].columns
    if join == "left":
        known = known & cube.specification.shared_columns
    return [part for part in query.conjuncts if part.columns and part.columns <= known]


def _plan_dataset(
    cube: LoadedCube,
    name: str,
    own: Sequence[Condition],
    query: ResolvedQuery,
    join: Join,
    among: Sequence[pa.Table],
) -> DatasetPlan:
    snapshot, specification = cube.snapshots[name], cube.specification
    within = [c for c in specification.partition_columns if c in snapshot.partition_keys]
    pruned = prune(cube.state.store, snapshot, own, within, cube.cache, among)
    on = (*within, *(c for c in specification.dimension_columns if c in snapshot.columns))
    needed = {*query.needed, *on}
    return DatasetPlan(
        dataset=name,
        snapshot=pruned.snapshot,
        files=_sketch(pruned.snapshot, pruned.kept, within),
        columns=tuple(c for c in snapshot.schema.names if c in needed),
        join=join,
        on=() if join == "seed" else on,
        condition=conjunction(own),
        overlaid=is_overlaid(pruned.snapshot, pruned.kept, within),
        cell_columns=on,
        steps=pruned.steps,
    )


def _sketch(snapshot: Snapshot, kept: pa.BooleanArray, within: Sequence[str]) -> pa.Table:
    """The places, partitions and sizes of some files, for alignment.

    The rest of their rows is decoded once it is known which files are left.
    """
    names = [PARTITION_PREFIX + name for name in within]
    files = snapshot.file_table.select([*names, "rows", "bytes"])
    return files.append_column(_ROW, pa.array(np.arange(len(kept)))).filter(kept)


def _with_files_to_open(item: DatasetPlan) -> DatasetPlan:
    """Replace a sketch of the files by the rows that are needed to open them."""
    kept = np.zeros(item.snapshot.file_table.num_rows, bool)
    kept[item.files[_ROW].to_numpy()] = True
    return replace(item, files=item.snapshot.opened(pa.array(kept)))


def _projected(seed: DatasetPlan, on: set[str]) -> DatasetPlan:
    """Reduce the seed dataset to fewer dimensions before the joins; it gives no payload then."""
    return replace(seed, distinct=tuple(c for c in seed.snapshot.schema.names if c in on))


def load_cube(
    state: State,
    datasets: Collection[str] = (),
    specification: CubeSpecification | None = None,
    cache: MetadataCache | None = None,
) -> LoadedCube:
    """Load the snapshots of a cube, of all datasets unless some are named.

    `specification` is for stores that lack it: Kartothek's `build_dataset_indices` drops it from
    the documents. Raises a `DatasetNotFoundError`, or a `ConsistencyError` if the seed dataset is
    missing or the datasets, of other programs or in several stores, do not fit together.
    """
    name = state.scope.name
    uuids = {state.scope.dataset_id(uuid): uuid for uuid in state.datasets}
    if not uuids:
        raise DatasetNotFoundError(f"{state.store.url} has no cube {name}.")
    _check_datasets(name, datasets, uuids)
    wanted = set(datasets) or set(uuids)
    snapshots = {key: state.snapshot(uuid) for key, uuid in uuids.items() if key in wanted}
    found = specification or (discover_cube(name, snapshots) if datasets else state.cube)
    if state.external or any(state.datasets[uuids[key]].foreign for key in snapshots):
        check_readable(name, snapshots, found)
    return LoadedCube(state, found, snapshots, cache or MetadataCache())


def listed_datasets(loaded: LoadedCube, datasets: Collection[str]) -> list[str]:
    """Give named datasets of a cube, once each; a text alone is one name.

    Raises a `DatasetNotFoundError`.
    """
    names = list(dict.fromkeys([datasets] if isinstance(datasets, str) else datasets))
    _check_datasets(loaded.specification.prefix, names, loaded.snapshots)
    return names


def _check_datasets(prefix: str, asked: Collection[str], known: Collection[str]) -> None:
    missing = sorted(set(asked) - set(known))
    if missing:
        raise DatasetNotFoundError(
            f"Cube {prefix} has no dataset {', '.join(missing)}; it has: "
            f"{', '.join(sorted(known))}."
        )
