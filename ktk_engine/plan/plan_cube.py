"""From a resolved scope to a plan: the one way that SQL, Python and the command line share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from ktk_engine.conditions.condition import Condition
from ktk_engine.cube.discovery import discover_cube
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import ConsistencyError, DatasetNotFoundError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.log.state import State
from ktk_engine.plan.cube_query import CubeQuery
from ktk_engine.plan.make_plan import make_plan
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.resolved_query import ResolvedQuery, cube_schema, resolve_query


@dataclass(frozen=True)
class LoadedCube:
    """A cube at one version, ready to be queried.

    Attributes:
        state: the scope it was resolved from.
        specification: what it is.
        snapshots: its datasets by id.
        known: what is known of its files from other queries.
    """

    state: State
    specification: CubeSpecification
    snapshots: dict[str, Snapshot]
    known: MetadataCache = field(default_factory=MetadataCache, compare=False, repr=False)

    @property
    def schema(self) -> pa.Schema:
        """Columns of the virtual table, in order."""
        return cube_schema(self.specification, self.snapshots)

    def plan(
        self, columns: Sequence[str] | None = None, where: str | Condition | None = None
    ) -> Plan:
        """Plan the reading of some columns of some rows; see `answer` for every question."""
        return self.answer(CubeQuery(columns, where))

    def answer(self, query: CubeQuery) -> Plan:
        """Plan a query of this version; see `CubeQuery` and `resolve_query`."""
        return self.plan_resolved(self.resolved(query))

    def resolved(self, query: CubeQuery) -> ResolvedQuery:
        """Check a query against this version."""
        return resolve_query(self.specification, self.snapshots, query)

    def plan_resolved(self, resolved: ResolvedQuery) -> Plan:
        """Plan a query that is checked already."""
        return make_plan(
            self.state.store,
            self.specification,
            self.state.version,
            self.snapshots,
            resolved,
            self.known,
        )

    def only(self, datasets: Collection[str]) -> LoadedCube:
        """The cube as if it had no other datasets and columns.

        Args:
            datasets: ids, the seed dataset's among them.

        Raises:
            DatasetNotFoundError: a dataset does not exist.
            ConsistencyError: the seed dataset is not among them.
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


def load_cube(
    state: State,
    datasets: Collection[str] = (),
    specification: CubeSpecification | None = None,
    known: MetadataCache | None = None,
) -> LoadedCube:
    """Load the snapshots of a cube.

    Args:
        state: the cube's scope, resolved.
        datasets: ids of the datasets to take; empty means all.
        specification: what the cube is, where the store cannot tell: Kartothek's
            `build_dataset_indices` drops that from the documents.
        known: what is known of the store's files from other queries.

    Raises:
        DatasetNotFoundError: the cube or a named dataset does not exist.
        ConsistencyError: there is no seed dataset among them.
    """
    name = state.scope.name
    uuids = {state.scope.dataset_id(uuid): uuid for uuid in state.datasets}
    if not uuids:
        raise DatasetNotFoundError(f"{state.store.url} has no cube {name}.")
    _check_datasets(name, datasets, uuids)
    wanted = set(datasets) or set(uuids)
    snapshots = {key: state.snapshot(uuid) for key, uuid in uuids.items() if key in wanted}
    found = specification or discover_cube(name, snapshots)
    return LoadedCube(state, found, snapshots, known or MetadataCache())


def listed_datasets(loaded: LoadedCube, datasets: Collection[str]) -> list[str]:
    """Give named datasets of a cube, once each; a text alone is one name.

    Raises:
        DatasetNotFoundError: a dataset does not exist.
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
