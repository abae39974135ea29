"""A cube at one version, as Python programs see it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.conditions.condition import Condition
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.describe.history import read_history
from ktk_engine.describe.info import describe_state
from ktk_engine.describe.stats import DatasetStats, collect_stats
from ktk_engine.facade.frames import Frame, Metadata
from ktk_engine.facade.query import Query
from ktk_engine.log.scope import cube_scope
from ktk_engine.log.state import resolve
from ktk_engine.log.version import parse_moment, tags_of
from ktk_engine.maintain.copy import plan_copy, run_copy
from ktk_engine.maintain.index import change_indexes
from ktk_engine.maintain.rename import rename
from ktk_engine.maintain.versions.restore import restore
from ktk_engine.maintain.versions.tag import delete_tag, tag_state
from ktk_engine.plan.cube_query import CubeQuery
from ktk_engine.plan.plan_cube import LoadedCube, listed_datasets
from ktk_engine.warehouse.author import python_history

if TYPE_CHECKING:
    from ktk_engine.facade.store import Store
    from ktk_engine.facade.transaction import Transaction


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

    def at(self, version: int | str | None = None, timestamp: datetime | str | None = None) -> Cube:
        """Open the cube at another version; all its datasets are of that one.

        Args:
            version: number of a commit, or a tag; default: the newest.
            timestamp: instead of a version, the moment as of which the cube is read.

        Raises:
            VersionGoneError: there is no such version (any more); the message says which are left.
            QueryError: both are given, or `timestamp` is no date or time.
        """
        return self._store.cube(self.name, version=version, timestamp=timestamp)

    def restore(
        self, version: int | str | None = None, timestamp: datetime | str | None = None
    ) -> Cube:
        """Make an earlier version the newest one again, as one commit; no data is written.

        Args:
            version: number of the commit to go back to, or a tag.
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

    def tag(self, name: str) -> None:
        """Name this version, so that no clean-up takes it as long as it has the name.

        `Cube.at`, `Store.cube` and SQL take the name in the place of a number.

        Args:
            name: for instance `2026-q1`; nothing that looks like a number.

        Raises:
            ConfigurationError: the name cannot be a tag.
            ConsistencyError: another version has the name.
            VersionGoneError: a clean-up has taken files of this version.
            CommitConflictError: the name was given, or a clean-up ran, meanwhile.
        """
        tag_state(self._loaded.state, name, python_history())

    def untag(self, name: str) -> None:
        """Take a name back from whichever version has it.

        Raises:
            VersionGoneError: no version has it.
        """
        delete_tag(self._store._store, self.name, name, python_history())

    def tags(self) -> dict[str, int]:
        """Names of versions and their numbers, as they are now."""
        return dict(tags_of(find_scope(self._store._store, self.name, removed=True)))

    def index(self, *columns: str, dataset: str | None = None) -> Cube:
        """Give columns a secondary index, as one commit that rewrites no data file.

        Args:
            columns: their names. One that is indexed already stays so.
            dataset: id of the only dataset to index; None for every one that has the column.

        Returns:
            The cube at its newest version.

        Raises:
            ConfigurationError: a column does not exist, is a partition column, or of a class that
                cannot be indexed.
            DataError: a row has no value in the column.
            CommitConflictError: another run removed a dataset or column; nothing was committed.
        """
        change_indexes(self._store._store, self.name, columns, dataset, python_history())
        return self.at()

    def drop_index(self, *columns: str, dataset: str | None = None) -> Cube:
        """Take secondary indices away, as one commit; see `index`.

        A dimension column of the seed dataset becomes one of `suppress_index_on`.
        """
        change_indexes(self._store._store, self.name, columns, dataset, python_history(), drop=True)
        return self.at()

    def copy_to(
        self,
        store: Store | str,
        name: str = "",
        *,
        datasets: Collection[str] | None = None,
        rename: Mapping[str, str] | None = None,
        overwrite: bool = False,
    ) -> Cube:
        """Copy this version into a store, as one commit there; every file is verified on the way.

        Args:
            store: where to, or its address. This cube's own store, if the copy gets a `name`.
            name: the copy's name; empty for the same.
            datasets: ids of the datasets to copy; None means all.
            rename: id of a dataset -> its id in the copy.
            overwrite: whether datasets of the target are replaced.

        Returns:
            The copy.

        Raises:
            DatasetNotFoundError: there is no such dataset.
            ConsistencyError: a dataset exists in the target, or does not fit what is there.
            FormatError: a file is damaged; nothing was committed.
        """
        from ktk_engine.facade.store import Store

        target = store if isinstance(store, Store) else Store(store)
        state = self._loaded.state
        plan = plan_copy(state, target._store, name, datasets, rename, overwrite)
        return target.cube(run_copy(plan, python_history()).name)

    def rename(self, name: str) -> Cube:
        """Give the cube another name in its store; its history stays under the old one.

        Args:
            name: its new name.

        Returns:
            The newest version under the new name.

        Raises:
            SpecificationError: it cannot be a name.
            ConsistencyError: the name is taken, or a tag or a cube model refers to the old one.
            CommitConflictError: somebody changed the cube meanwhile; it keeps its name.
        """
        rename(self._store._store, self.name, name, python_history())
        return self._store.cube(name)

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

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Change the cube in a block; its end commits all changes at once, from its newest version.

        If the block raises, nothing is committed. This object stays at its version; `at()` opens
        the new one.

        Raises:
            CommitConflictError: another run changed what the block was computed from; nothing was
                committed.
        """
        from ktk_engine.facade.transaction import transaction

        state = resolve(self._store._store, cube_scope(self.name))
        with transaction(self._store, state) as changes:
            yield changes

    def extend(
        self,
        datasets: Mapping[str, Frame],
        *,
        partition_on: Mapping[str, Sequence[str]] | None = None,
        indexes: Collection[str] = (),
        metadata: Metadata | None = None,
        overwrite: bool = False,
    ) -> Cube:
        """Add enrichments, in one commit.

        Args:
            datasets: the rows of each new dataset by its id; see `Frame`.
            partition_on: dataset id -> columns, for datasets that are laid out in another way than
                by those of the cube's partition columns that they have.
            indexes: columns that get a secondary index, beside the cube's.
            metadata: dataset id -> what you want to note of it.
            overwrite: whether datasets that exist are replaced.

        Returns:
            The cube at its new version.

        Raises:
            KtkError: see `Store.build`.
        """
        with self.transaction() as changes:
            changes.extend(
                datasets,
                partition_on=partition_on,
                indexes=indexes,
                metadata=metadata,
                overwrite=overwrite,
            )
        return self.at()

    def append(self, datasets: Mapping[str, Frame], *, metadata: Metadata | None = None) -> Cube:
        """Add rows to datasets, in one commit; a cell that is there already gets the new row.

        Args:
            datasets: the new rows of each dataset by its id; see `Frame`.
            metadata: dataset id -> what you want to note of it, beside what is noted.

        Returns:
            The cube at its new version.

        Raises:
            DatasetNotFoundError: a dataset does not exist.
            KtkError: see `Store.build`.
        """
        with self.transaction() as changes:
            changes.append(datasets, metadata=metadata)
        return self.at()

    def update(
        self,
        datasets: Mapping[str, Frame],
        where: str | Condition | None = None,
        *,
        metadata: Metadata | None = None,
    ) -> Cube:
        """Replace rows of datasets: those that fulfil a condition go, new ones come; one commit.

        Args:
            datasets: the new rows of each dataset by its id; other datasets stay as they are.
            where: which rows go, by columns that each of these datasets has; None means all.
            metadata: as for `append`.

        Returns:
            The cube at its new version.

        Raises:
            KtkError: see `append` and `delete`.
        """
        with self.transaction() as changes:
            changes.update(datasets, where, metadata=metadata)
        return self.at()

    def delete(self, where: str | Condition, datasets: Collection[str] | None = None) -> Cube:
        """Take out the rows that fulfil a condition, in one commit.

        Only files that hold such a row are written again; where partition columns alone decide,
        none is.

        Args:
            where: for instance `origin = 'JFK' and month = 1`.
            datasets: whose rows; None means the seed dataset's, and those of all datasets that have
                the columns of the condition. What other datasets hold of cells that are gone is
                not seen any more.

        Returns:
            The cube at its new version.

        Raises:
            ConfigurationError: a dataset lacks a column of the condition; nothing was deleted.
            CommitConflictError: other commits came first each time.
            LocalEngineError: what stays in a file does not fit into memory piece by piece.
        """
        return self._change_again(lambda changes: changes.delete(where, datasets))

    def remove_partitions(
        self, where: str | Condition | None = None, datasets: Collection[str] | None = None
    ) -> Cube:
        """Take out whole partitions, in one commit; no file is read or written.

        Args:
            where: on partition columns; None means all.
            datasets: whose; None means all that are partitioned by these columns.

        Returns:
            The cube at its new version.

        Raises:
            ConfigurationError: a dataset is not partitioned by the columns; nothing was deleted.
        """
        return self._change_again(lambda changes: changes.remove_partitions(where, datasets))

    def drop(self, *datasets: str) -> Cube:
        """Take enrichments out of the cube, in one commit; `ktk undrop` brings them back.

        Args:
            *datasets: their ids.

        Returns:
            The cube at its new version.

        Raises:
            DatasetNotFoundError: one does not exist.
            ConsistencyError: one is the seed dataset; `Store.drop` takes out the whole cube.
        """
        with self.transaction() as changes:
            changes.drop(*datasets)
        return self.at()

    def _change_again(self, change: Callable[[Transaction], None]) -> Cube:
        """Make a change that needs no rows, again where another commit came first."""
        from ktk_engine.facade.transaction import change_again

        change_again(self._store, self.name, change)
        return self.at()

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
