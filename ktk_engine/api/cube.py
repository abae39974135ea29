"""A cube at one version, as Python programs see it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from ktk_engine.api.as_of import AsOf, event_rows
from ktk_engine.api.cube_or_table import CubeOrTable
from ktk_engine.api.frames import Frame, Metadata
from ktk_engine.api.opened_store import OpenedStore
from ktk_engine.api.query import Query, Types
from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.parameters import bind
from ktk_engine.cube.dataset_uuid import dataset_uuid
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.describe.stats import DatasetStats, collect_stats
from ktk_engine.errors import ConsistencyError
from ktk_engine.log.change.after_commit import after_commit
from ktk_engine.log.scope import cube_scope
from ktk_engine.log.state import State, resolve
from ktk_engine.maintain.copy import plan_copy, run_copy
from ktk_engine.messages import Remedy
from ktk_engine.plan.cube_query import CubeQuery
from ktk_engine.plan.plan_as_of import AsOfQuery
from ktk_engine.plan.plan_cube import LoadedCube, listed_datasets, load_cube
from ktk_engine.store.open_store import open_store
from ktk_engine.warehouse.actor import python_history

if TYPE_CHECKING:
    from ktk_engine.api.transaction import Transaction


class Cube(CubeOrTable):
    """A cube at one version.

    Make one with `Store.cube`.
    """

    _loaded: LoadedCube

    def __init__(self, store: OpenedStore, loaded: LoadedCube) -> None:
        self._store = store
        self._loaded = loaded

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

    def _open(self, name: str, version: int | str | None, moment: date | str | None) -> Cube:
        return Cube(self._store, self._store._load_cube(name, version, moment))

    def _of(self, state: State) -> Cube:
        return Cube(self._store, load_cube(state, cache=self._store._cache))

    def copy_to(
        self,
        store: OpenedStore | str,
        name: str = "",
        *,
        datasets: Collection[str] | None = None,
        rename: Mapping[str, str] | None = None,
        overwrite: bool = False,
    ) -> Cube:
        """Copy this version into a store, as one commit there; every file is verified on the way.

        Args:
            store: where to, a `Store` or its address. This cube's own store, if the copy gets a
                `name`.
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

        Examples:
            >>> cube.copy_to(store, "copy", datasets=["flights"]).datasets
            ['flights']
        """
        target = store if isinstance(store, OpenedStore) else OpenedStore(open_store(store))
        state = self._loaded.state
        plan = plan_copy(state, target._store, name, datasets, rename, overwrite)
        copy = run_copy(plan, python_history()).name
        with after_commit(copy):
            return Cube(target, target._load_cube(copy, None, None))

    def stats(self, datasets: Collection[str] | None = None) -> dict[str, DatasetStats]:
        """Return the sizes of the datasets of this version.

        Args:
            datasets: ids of the datasets; None means all.

        Returns:
            By dataset its rows, files, bytes and partitions, the seed dataset first.

        Raises:
            DatasetNotFoundError: a dataset does not exist.

        Examples:
            >>> cube.stats()["flights"].rows
            3
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

        Examples:
            >>> with cube.transaction() as changes:
            ...     changes.delete("dest = 'LAX'")
            ...     changes.drop("weather")
            >>> cube.at()
            Cube('trips', version=2)
        """
        from ktk_engine.api.transaction import transaction

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
            indexes: columns that get a secondary index, besides those of the cube.
            metadata: dataset id -> what you want to note about it.
            overwrite: whether datasets that exist are replaced.

        Returns:
            The cube at its new version.

        Raises:
            KtkError: see `Store.build`.

        Examples:
            >>> planes = pa.table({"flight": [1], "seats": [180]})
            >>> cube.extend({"planes": planes}).datasets
            ['flights', 'planes', 'weather']
        """
        with self.transaction() as changes:
            changes.extend(
                datasets,
                partition_on=partition_on,
                indexes=indexes,
                metadata=metadata,
                overwrite=overwrite,
            )
        return self._changed(changes.committed)

    def append(self, datasets: Mapping[str, Frame], *, metadata: Metadata | None = None) -> Cube:
        """Add rows to datasets, in one commit; a cell that is there already gets the new row.

        Args:
            datasets: the new rows of each dataset by its id; see `Frame`.
            metadata: dataset id -> properties to add to those that it has.

        Returns:
            The cube at its new version.

        Raises:
            DatasetNotFoundError: a dataset does not exist.
            KtkError: see `Store.build`.

        Examples:
            >>> new = pa.table({"origin": ["LGA"], "flight": [4], "dest": ["SFO"]})
            >>> cube.append({"flights": new}).query().count()
            4
        """
        with self.transaction() as changes:
            changes.append(datasets, metadata=metadata)
        return self._changed(changes.committed)

    def update(
        self,
        datasets: Mapping[str, Frame],
        where: str | Condition | None = None,
        *,
        parameters: Mapping[str, object] | None = None,
        metadata: Metadata | None = None,
    ) -> Cube:
        """Replace rows of datasets: those that fulfil a condition go, new ones come; one commit.

        Args:
            datasets: the new rows of each dataset by its id; other datasets stay as they are.
            where: which rows go, by columns that each of these datasets has; None means all.
            parameters: as for `query`.
            metadata: as for `append`.

        Returns:
            The cube at its new version.

        Raises:
            KtkError: see `append` and `delete`.

        Examples:
            >>> new = pa.table({"origin": ["JFK"], "flight": [2], "dest": ["BOS"]})
            >>> cube = cube.update({"flights": new}, "origin = 'JFK'")
            >>> cube.query(["flight", "dest"]).to_arrow().to_pylist()
            [{'flight': 1, 'dest': 'SFO'}, {'flight': 2, 'dest': 'BOS'}]
        """
        with self.transaction() as changes:
            changes.update(datasets, where, parameters=parameters, metadata=metadata)
        return self._changed(changes.committed)

    def delete(
        self,
        where: str | Condition,
        datasets: Collection[str] | None = None,
        *,
        parameters: Mapping[str, object] | None = None,
    ) -> Cube:
        """Delete the rows that fulfil a condition, in one commit.

        Only files that hold such a row are written again; where partition columns alone decide,
        none is.

        Args:
            where: for instance `origin = 'JFK' and month = 1`.
            datasets: whose rows; None means the seed dataset's, and those of all datasets that have
                the columns of the condition. What other datasets hold of cells that are gone is
                no longer visible.
            parameters: as for `query`.

        Returns:
            The cube at its new version.

        Raises:
            ConfigurationError: a dataset lacks a column of the condition; nothing was deleted.
            CommitConflictError: other commits came first each time.
            LocalEngineError: what stays in a file does not fit into memory piece by piece.

        Examples:
            >>> cube.delete("dest = 'LAX'").query().count()
            2
        """
        return self._change_again(
            lambda changes: changes.delete(where, datasets, parameters=parameters)
        )

    def remove_partitions(
        self,
        where: str | Condition | None = None,
        datasets: Collection[str] | None = None,
        *,
        parameters: Mapping[str, object] | None = None,
    ) -> Cube:
        """Delete whole partitions, in one commit; no file is read or written.

        Args:
            where: on partition columns; None means all.
            datasets: whose; None means all that are partitioned by these columns.
            parameters: as for `query`.

        Returns:
            The cube at its new version.

        Raises:
            ConfigurationError: a dataset is not partitioned by the columns; nothing was deleted.

        Examples:
            >>> cube.remove_partitions("origin = 'JFK'").query().count()
            1
        """
        return self._change_again(
            lambda changes: changes.remove_partitions(where, datasets, parameters=parameters)
        )

    def drop(self, *datasets: str) -> Cube:
        """Drop enrichments, in one commit; `ktk undrop` brings them back.

        Args:
            *datasets: their ids.

        Returns:
            The cube at its new version.

        Raises:
            DatasetNotFoundError: one does not exist.
            ConsistencyError: one is the seed dataset; `Store.drop` drops the whole cube.

        Examples:
            >>> cube.drop("weather").datasets
            ['flights']
        """
        if set(self.datasets) <= set(datasets):
            raise ConsistencyError(
                f"Cube {self.name} has no other datasets. To drop the whole cube: ",
                Remedy.on("drop", self.name),
                ". Nothing was removed.",
            )
        with self.transaction() as changes:
            changes.drop(*datasets)
        return self._changed(changes.committed)

    def alter(
        self,
        dataset: str,
        *,
        add: Mapping[str, pa.DataType | str] | None = None,
        drop: Collection[str] = (),
        rename: Mapping[str, str] | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> Cube:
        """Add, drop and rename payload columns of a dataset, in one commit.

        Args:
            dataset: its id.
            add: new column -> its type, by name or Arrow's; null in all rows that there are.
            drop: columns that go.
            rename: column -> its new name.
            properties: what to note in the user metadata, as a commit of its own; a value of None
                takes an entry away.

        Returns:
            The cube at its new version.

        Raises:
            DatasetNotFoundError: there is no such dataset.
            ConfigurationError: a column does not exist, is a dimension or partition column, or its
                new name is taken; nothing was changed.
            TypeClassError: no column may be called so, or be of this type.
            CommitConflictError: other commits came first each time.

        Examples:
            >>> cube.alter("weather", rename={"gust": "wind"}).query(["wind"], "wind > 20").count()
            1
        """
        from ktk_engine.api.alter import alter

        uuid = dataset_uuid(self.name, listed_datasets(self._loaded, (dataset,))[0])
        alter(self._store, uuid, add or {}, drop, rename or {}, properties or {})
        return self._changed()

    def _change_again(self, change: Callable[[Transaction], None]) -> Cube:
        """Make a change that needs no rows, again where another commit came first."""
        from ktk_engine.api.transaction import retry_transaction_on_conflict

        return self._changed(retry_transaction_on_conflict(self._store, self.name, change))

    def query(
        self,
        columns: Sequence[str] | None = None,
        where: str | Condition | None = None,
        *,
        dimension_columns: Sequence[str] | None = None,
        partition_by: Sequence[str] | None = None,
        payload_columns: Sequence[str] | Literal["*"] | None = None,
        datasets: Collection[str] | None = None,
        limit: int | None = None,
        parameters: Mapping[str, object] | None = None,
        types: Types = "class",
    ) -> Query:
        """Ask for rows of the joined table; nothing is read yet.

        The result has exactly `columns`, in that order. Without them it has all columns that
        `dimension_columns` leave, in the order of `schema`. With `payload_columns` it has
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
            limit: the largest number of rows, the first in the order of collected rows. Files that
                can hold none of them are not opened. None means all.
            parameters: values for the names that `where` has as `:name`. A list, set, array or
                column is for `in (:name)`.
            types: "class" gives the types of the columns' classes, for instance float64 and int64.
                "stored" gives those of the files, for instance float32, int8 and lists of fixed
                size. If files differ, it gives the smallest type that holds all values.
                Dictionaries come as their values. `to_spark` refuses it.

        Raises:
            QueryError: an unknown column, with the nearest known one; a projection that would
                have to choose among values; a limit of groups.
            ConditionError: the condition cannot be parsed or compares different classes.
            DatasetNotFoundError: a dataset does not exist.
            ConsistencyError: the seed dataset is not among `datasets`.

        Examples:
            >>> cube.query(["flight", "gust"], "dest = 'SFO'").to_arrow().to_pylist()
            [{'flight': 1, 'gust': 31.0}, {'flight': 3, 'gust': None}]
            >>> names = ["LAX", "BOS"]
            >>> cube.query(where="dest in (:names)", parameters={"names": names}).count()
            1
        """
        loaded = self._loaded if datasets is None else self._loaded.only(datasets)
        question = CubeQuery(
            columns,
            bind(where, parameters),
            dimension_columns,
            partition_by,
            payload_columns,
            limit,
        )
        return Query(self._store, loaded, question, types)

    def as_of(
        self,
        events: Frame,
        on: Sequence[str],
        *,
        time: str,
        within: timedelta | str | int | None = None,
        columns: Sequence[str] | None = None,
        where: str | Condition | None = None,
        parameters: Mapping[str, object] | None = None,
        types: Types = "class",
    ) -> AsOf:
        """Ask for the newest cells that are not later than events; no data file is read yet.

        Each dataset that has the column `time` gives its newest cell with the event's keys; the
        others give the cell with its keys. Only keys that a dataset has count for it, and only
        cells that are rows of the cube. An event without such a cell, or with a null among its
        keys, gets nulls.

        Args:
            events: rows as writers take them, except Spark's. They are held in memory.
            on: dimension or partition columns whose values must be equal, of cube and events.
            time: the dimension or partition column that is the cell's time; events have it, too.
            within: the largest age of a cell, inclusive, such as `7 days` or a timedelta; a number
                if the times are integers. None means any age.
            columns: payload columns; None means all.
            where: as for `query`: which rows of the cube count.
            parameters: as for `query`.
            types: as for `query`, of the cube's columns.

        Returns:
            The events in their order with `columns`, ready to be read.

        Raises:
            QueryError: a column is missing, of another class or in both, or a dataset has a further
                dimension, so that an event may have several newest cells.
            DataError: `events` cannot be read as rows.

        Examples:
            >>> events = pa.table({"flight": [2, 9], "origin": ["JFK", "JFK"], "label": [1, 0]})
            >>> rows = cube.as_of(events, ["origin"], time="flight", columns=["dest", "gust"])
            >>> rows.to_arrow().select(["label", "dest", "gust"]).to_pylist()
            [{'label': 1, 'dest': 'LAX', 'gust': 12.5}, {'label': 0, 'dest': 'SFO', 'gust': 12.5}]
        """
        question = AsOfQuery(on, time, within, columns, bind(where, parameters))
        return AsOf(self._store, self._loaded, event_rows(events), question, types)
