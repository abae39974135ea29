"""From a resolved scope to a plan: the one way that SQL, Python and the command line share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ktk_engine.cube.discovery import discover_cube
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import DatasetNotFoundError
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.log.state import State
from ktk_engine.plan.intention import cube_schema, make_intention
from ktk_engine.plan.make_plan import make_plan
from ktk_engine.plan.plan import Plan
from ktk_engine.types.condition import Condition


@dataclass(frozen=True)
class LoadedCube:
    """A cube at one version, ready to be queried.

    Attributes:
        state: the scope it was resolved from.
        specification: what it is.
        snapshots: its datasets by id.
    """

    state: State
    specification: CubeSpecification
    snapshots: dict[str, Snapshot]

    @property
    def schema(self) -> pa.Schema:
        """Columns of the virtual table, in order."""
        return cube_schema(self.specification, self.snapshots)

    def plan(
        self, columns: Sequence[str] | None = None, where: str | Condition | None = None
    ) -> Plan:
        """Plan a query of this version; see `make_intention` for what is asked."""
        intention = make_intention(self.specification, self.snapshots, columns, where)
        return make_plan(
            self.state.store, self.specification, self.state.version, self.snapshots, intention
        )


def load_cube(
    state: State,
    datasets: Collection[str] = (),
    specification: CubeSpecification | None = None,
) -> LoadedCube:
    """Load the snapshots of a cube.

    Args:
        state: the cube's scope, resolved.
        datasets: ids of the datasets to take; empty means all.
        specification: what the cube is, where the store cannot tell: Kartothek's
            `build_dataset_indices` drops that from the documents (kartothek.md, B1).

    Raises:
        DatasetNotFoundError: the cube or a named dataset does not exist.
        ConsistencyError: there is no seed dataset among them.
    """
    name = state.scope.name
    known = {state.scope.dataset_id(uuid): uuid for uuid in state.datasets}
    if not known:
        raise DatasetNotFoundError(f"{state.store.url} has no cube {name}.")
    missing = sorted(set(datasets) - set(known))
    if missing:
        raise DatasetNotFoundError(
            f"Cube {name} has no dataset {', '.join(missing)}; it has: {', '.join(sorted(known))}."
        )
    wanted = set(datasets) or set(known)
    snapshots = {key: state.snapshot(uuid) for key, uuid in known.items() if key in wanted}
    return LoadedCube(state, specification or discover_cube(name, snapshots), snapshots)
