"""What a query needs in other processes: its version, pinned, and the number of its part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral

from ktk_engine.api.opened_store import OpenedStore
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import QueryError, VersionGoneError
from ktk_engine.plan.plan_cube import LoadedCube
from ktk_engine.plan.plan_table import LoadedTable
from ktk_engine.store.open_store import open_store


@dataclass(frozen=True)
class Pinned:
    """A cube or table at one version, without anything secret, for another process to open."""

    url: str
    options: Mapping[str, str]
    name: str
    version: int
    commit: str  # of the version, since a rebuilt store has the same numbers
    specification: CubeSpecification | None  # None: a table
    datasets: tuple[str, ...]  # of the cube that are looked at

    def open(self) -> tuple[OpenedStore, LoadedCube | LoadedTable]:
        """Open it again.

        Raises:
            VersionGoneError: the version is gone, or another one has its number now.
        """
        store = OpenedStore(open_store(self.url, self.options))
        loaded: LoadedCube | LoadedTable
        if self.specification is None:
            loaded = store._load_table(self.name, self.version, None)
        else:
            loaded = store._load_cube(self.name, self.version, None, self.specification)
            loaded = loaded.only(self.datasets)
        if loaded.state.head_sha256 != self.commit:
            raise VersionGoneError(
                f"{self.name} of {store.url} was built again: its version {self.version} is "
                "another one now. Open it again, and ask again."
            )
        return store, loaded


def pinned(loaded: LoadedCube | LoadedTable) -> Pinned:
    """Say how another process opens what is loaded here.

    Raises:
        TypeError: it cannot, or only with a secret.
    """
    state = loaded.state
    options = state.store.public_options
    if options is None or state.external:
        raise TypeError(
            f"What is read from {state.store.url} cannot be pickled: another process would need "
            "secrets or rows that belong in no pickle. Leave keys to the environment, where both "
            "processes find them, or open the store in the other process."
        )
    if not state.version or any(item.foreign for item in state.datasets.values()):
        raise TypeError(
            f"What is read from {state.store.url} cannot be pickled: another program wrote "
            f"{state.scope.name}, which has no version for that yet. Open it in the other process."
        )
    specification, datasets = None, tuple[str, ...]()
    if isinstance(loaded, LoadedCube):
        specification, datasets = loaded.specification, tuple(loaded.snapshots)
    return Pinned(
        state.store.url,
        options,
        state.scope.name,
        state.version,
        state.head_sha256,
        specification,
        datasets,
    )


def check_shard(index: int, count: int) -> tuple[int, int]:
    """Give the number of a part and of all parts; anything else is a `QueryError`."""
    whole = all(isinstance(n, Integral) and not isinstance(n, bool) for n in (index, count))
    if not whole or not 0 <= index < count:
        raise QueryError(
            f"A shard is one of 0 to count - 1, but index is {index!r} and count is {count!r}."
        )
    return int(index), int(count)
