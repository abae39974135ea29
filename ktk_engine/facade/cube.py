"""A cube at one version, as Python programs see it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from ktk_engine.conditions.condition import Condition
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.describe.history import read_history
from ktk_engine.describe.info import describe_state
from ktk_engine.describe.stats import DatasetStats, collect_stats
from ktk_engine.facade.query import Query
from ktk_engine.log.version import parse_moment
from ktk_engine.maintain.restore import restore
from ktk_engine.plan.cube_query import CubeQuery
from ktk_engine.plan.plan_cube import LoadedCube, listed_datasets

if TYPE_CHECKING:
    from ktk_engine.facade.store import Store


class Cube:
    """A cube at one version.

    Make one with `Store.cube`.
    """

    def __init__(self, store: Store, loaded: LoadedCube) -> None:
        self._store = store
        self._loaded = loaded

    def __repr__(self) -> str:
        """Show name and version."""
        return f"Cube({self.name!r}, version={self.version})"

    @property
    def name(self) -> str:
        """The cube's name."""
        return self._loaded.specification.prefix

    @property
    def specification(self) -> CubeSpecification:
        """What the cube is: dimensions, partition columns, seed dataset, indexes."""
        return self._loaded.specification

    @property
    def datasets(self) -> list[str]:
        """Ids of the datasets: the seed dataset first, then by name."""
        seed = self.specification.seed_dataset
        return sorted(self._loaded.snapshots, key=lambda name: (name != seed, name))

    @property
    def schema(self) -> pa.Schema:
        """Columns of the virtual table, in order."""
        return self._loaded.schema

    @property
    def version(self) -> int:
        """Version of the cube's log; 0 for what Kartothek wrote."""
        return self._loaded.state.version

    def at(self, version: int | None = None, timestamp: datetime | str | None = None) -> Cube:
        """Open the cube at another version; all its datasets are of that one.

        Args:
            version: number of a commit; default: the newest.
            timestamp: instead of a version, the moment as of which the cube is read.

        Raises:
            VersionGoneError: there is no such version (any more); the message says which are left.
            QueryError: both are given, or `timestamp` is no date or time.
        """
        return self._store.cube(self.name, version=version, timestamp=timestamp)

    def restore(self, version: int | None = None, timestamp: datetime | str | None = None) -> Cube:
        """Make an earlier version the newest one again, as one commit; no data is written.

        Args:
            version: number of the commit to go back to.
            timestamp: instead of a version, a moment: the last commit until then counts.

        Returns:
            The cube at its new version.

        Raises:
            VersionGoneError: there is no such version (any more).
            ConsistencyError: nothing would change.
            CommitConflictError: another run changed the cube meanwhile; nothing was committed.
        """
        moment = parse_moment(version, timestamp)
        restore(self._store._store, self.name, version, moment)
        return self.at()

    def info(self) -> dict[str, Any]:
        """Describe this version: datasets, columns, sizes, comments, the last commit.

        Returns:
            The same as `ktk info --json`: only plain dicts, lists, texts and numbers.
        """
        return describe_state(self._loaded.state).as_dict()

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """List the commits of the cube, newest first, whichever version this one is.

        Args:
            limit: at most so many; None means all.

        Returns:
            The same as `ktk history --json`, a dict each.
        """
        entries = read_history(self._store._store, self.name, limit)
        return [entry.as_dict() for entry in entries]

    def stats(self, datasets: Collection[str] | None = None) -> dict[str, DatasetStats]:
        """Tell how large the datasets of this version are.

        Args:
            datasets: ids of the datasets; None means all.

        Returns:
            By dataset its rows, files, bytes and partitions, the seed dataset first.

        Raises:
            DatasetNotFoundError: a dataset does not exist.
        """
        loaded = self._loaded
        names = self.datasets if datasets is None else listed_datasets(loaded, datasets)
        return collect_stats(loaded.state, {name: loaded.snapshots[name] for name in names})

    def query(
        self,
        columns: Sequence[str] | None = None,
        where: str | Condition | None = None,
        *,
        dimension_columns: Sequence[str] | None = None,
        partition_by: Sequence[str] | None = None,
        payload_columns: Sequence[str] | Literal["*"] | None = None,
        datasets: Collection[str] | None = None,
    ) -> Query:
        """Ask for rows of the joined table; nothing is read yet.

        The result has exactly `columns`, in that order; without them all columns in the order of
        `schema`, as far as `dimension_columns` leave them. With `payload_columns` it has
        Kartothek's form instead: these, the dimension, partition and `partition_by` columns, sorted
        by name. Collected rows are sorted by the dimension columns and then the partition columns.

        Args:
            columns: output columns, in order.
            where: a condition as SQL text, for instance `dest = 'SFO' and wind_gust > 30`.
            dimension_columns: fewer dimensions, or another order of them. Each cell of a
                partition is one row; datasets with a dropped dimension cannot give columns.
            partition_by: indexed columns by whose values the result is cut into groups. A
                dataset that has such a column as payload is joined inner.
            payload_columns: names, or "*" for all.
            datasets: ids of the datasets to look at, the seed dataset among them; None means all.

        Raises:
            QueryError: an unknown column, with the nearest known one, or a projection that would
                have to choose among values.
            ConditionError: the condition cannot be parsed or compares different classes.
            DatasetNotFoundError: a dataset does not exist.
            ConsistencyError: the seed dataset is not among `datasets`.
        """
        loaded = self._loaded if datasets is None else self._loaded.only(datasets)
        question = CubeQuery(columns, where, dimension_columns, partition_by, payload_columns)
        return Query(self._store, loaded, question)
