"""A store, as Python programs see it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal

from ktk_engine.api.cube import Cube
from ktk_engine.api.frames import Frame, Metadata, explaining_fixes
from ktk_engine.api.names import names_of
from ktk_engine.api.opened_store import OpenedStore
from ktk_engine.api.table import Table
from ktk_engine.catalog.catalog import list_scopes
from ktk_engine.catalog.find_scope import present_scopes
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.errors import ConfigurationError, ForeignWriterError
from ktk_engine.log.change.after_commit import after_commit
from ktk_engine.log.garbage import Garbage, Retention
from ktk_engine.log.scope import LogScope, cube_scope
from ktk_engine.log.state import resolve
from ktk_engine.maintain.cleanup import plan_cleanup, run_cleanup, scope_to_clean
from ktk_engine.maintain.remove import remove
from ktk_engine.plan.open_relation import open_relation
from ktk_engine.plan.plan_cube import LoadedCube
from ktk_engine.store.ask_all import ask_all
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.open_store import open_store
from ktk_engine.warehouse.actor import python_history

_WEEK = timedelta(days=7)


class Store(OpenedStore):
    """A store: the folder of one dbt schema, or any store that Kartothek wrote.

    Threads may share it, and the cubes and queries that it gives.

    Attributes:
        url: its address.
    """

    def __init__(self, url: str | Path, storage_options: Mapping[str, Any] | None = None) -> None:
        """Open a store; nothing is read yet.

        Args:
            url: a path of the local disk, a `file:///` URL, or an object store: `s3://...`,
                `gs://...`, `az://...`, `abfss://...`.
            storage_options: settings of an object store, such as `endpoint` and keys; what is
                not given is looked for where the cloud's own tools do.

        Raises:
            ConfigurationError: the address or a setting cannot be used.
        """
        super().__init__(open_store(url, storage_options))

    @classmethod
    def of(cls, store: ObjectStore) -> Store:
        """Make a `Store` of an object store that is open already."""
        made = cls.__new__(cls)
        OpenedStore.__init__(made, store)
        return made

    def __repr__(self) -> str:
        """Show the address."""
        return f"Store({self.url!r})"

    def _repr_html_(self) -> str:
        """Show cubes and tables with their sizes, in a notebook."""
        from ktk_engine.describe.as_html import store_html
        from ktk_engine.describe.info import list_contents

        return store_html(self.url, list_contents(self._store))

    def cubes(self) -> list[str]:
        """Names of the cubes, sorted.

        Examples:
            >>> store.cubes()
            ['trips']
        """
        return self._present(cubes=True)

    def cube(
        self,
        name: str,
        specification: CubeSpecification | None = None,
        *,
        version: int | str | None = None,
        timestamp: date | str | None = None,
    ) -> Cube:
        """Open a cube at one version, which stays the same as long as the object lives.

        Args:
            name: the cube's name.
            specification: what the cube is, where the store cannot tell: Kartothek's
                `build_dataset_indices` drops that from the documents.
            version: number of a commit, as `ktk history` lists them, or a tag; default: the newest.
            timestamp: instead of a version, the moment as of which the cube is read: the last
                commit until then counts. Text in ISO 8601; without a time zone it is UTC.

        Raises:
            DatasetNotFoundError: there is no such cube; the message says what exists.
            ConsistencyError: it has no seed dataset yet.
            VersionGoneError: there is no such version, or a clean-up removed it; the message says
                which are left.

        Examples:
            >>> store.cube("trips").datasets
            ['flights', 'weather']
            >>> store.cube("trips", version=1)
            Cube('trips', version=1)
        """
        return Cube(self, self._load_cube(name, version, timestamp, specification))

    def build(
        self,
        name: str,
        datasets: Frame | Mapping[str, Frame],
        *,
        dimension_columns: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        seed: str = "seed",
        indexes: Collection[str] = (),
        suppress_index_on: Collection[str] = (),
        index_dimensions: Literal["always", "never"] = "always",
        partition_on: Mapping[str, Sequence[str]] | None = None,
        metadata: Metadata | None = None,
        overwrite: bool = False,
        specification: CubeSpecification | None = None,
    ) -> Cube:
        """Build a cube, all of its datasets in one commit; Java starts for Spark frames alone.

        Args:
            name: the cube's name.
            datasets: the rows of each dataset by its id (see `Frame`); one frame is the seed
                dataset's.
            dimension_columns: what addresses a cell, in order. An enrichment has some of them.
            partition_by: columns by which files are laid out, in order; an enrichment is laid out
                by those that it has.
            seed: id of the seed dataset, which says which cells exist.
            indexes: further columns that get a secondary index, in every dataset that has them.
            suppress_index_on: dimension columns of the seed dataset that get none.
            index_dimensions: `never` gives none of them an index.
            partition_on: dataset id -> columns, for enrichments that are laid out in another way.
            metadata: dataset id -> what you want to note about it, as JSON values. It stays when
                the dataset is rebuilt.
            overwrite: whether the datasets of a cube that exists are replaced, all of them.
            specification: all of the above in one; the other arguments are not looked at then.

        Returns:
            The cube at its new version.

        Raises:
            TypeClassError: columns break the rules of type classes; nothing was written.
            DataError: rows repeat a cell, lack a value or cannot be stored; nothing was committed.
            ConfigurationError: a column or layout does not fit.
            ConsistencyError: the cube exists, or its datasets would not fit together.
            CommitConflictError: another run changed the cube meanwhile; nothing was committed.

        Examples:
            >>> rows = pa.table({"x": [1, 2], "v": [0.5, None]})
            >>> store.build("small", rows, dimension_columns=["x"])
            Cube('small', version=1)
        """
        from ktk_engine.api.transaction import build

        cube = specification or CubeSpecification(
            name,
            names_of("dimension_columns", dimension_columns),
            names_of("partition_by", partition_by),
            seed,
            frozenset(names_of("indexes", indexes)),
            frozenset(_without_index(index_dimensions, suppress_index_on, dimension_columns)),
        )
        frames = datasets if isinstance(datasets, Mapping) else {cube.seed_dataset: datasets}
        state = resolve(self._store, cube_scope(cube.prefix))
        with explaining_fixes(*frames.values()):
            build(self, state, cube, frames, partition_on or {}, metadata or {}, overwrite)
        with after_commit(cube.prefix):
            return self.cube(cube.prefix)

    def tables(self) -> list[str]:
        """Names of the plain tables, sorted.

        Examples:
            >>> store.tables()
            ['fares']
        """
        return self._present(cubes=False)

    def table(
        self,
        name: str,
        *,
        version: int | str | None = None,
        timestamp: date | str | None = None,
    ) -> Table:
        """Open a plain table at one version, which stays the same as long as the object lives.

        Args:
            name: the table's name.
            version: as for `cube`.
            timestamp: as for `cube`.

        Raises:
            DatasetNotFoundError: there is no such table; the message says what exists.
            VersionGoneError: there is no such version, or a clean-up removed it.

        Examples:
            >>> store.table("fares").rows
            2
        """
        return Table(self, self._load_table(name, version, timestamp))

    def write_table(
        self,
        name: str,
        frame: Frame,
        mode: Literal["append", "overwrite", "merge"] = "append",
        *,
        key: Sequence[str] = (),
        partition_by: Sequence[str] | None = None,
        indexes: Sequence[str] | None = None,
        clustered_by: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Table:
        """Write rows to a plain table, in one commit; it is created if it does not exist.

        Args:
            name: the table's name.
            frame: the rows; see `Frame`.
            mode: "append" adds them. "overwrite" replaces all rows. "merge" replaces the row that
                has the same key, and adds the others.
            key: for "merge": columns that tell rows apart; null matches nothing.
            partition_by: columns by which files are laid out; None leaves the layout as it is.
            indexes: columns with a secondary index; None leaves them as they are.
            clustered_by: columns by which the rows of a file are sorted; None leaves them as they
                are.
            metadata: what you want to note about it, as JSON values.

        Returns:
            The table at its new version.

        Raises:
            TypeClassError: columns break the rules of type classes; nothing was written.
            DataError: rows cannot be stored, or repeat a key; nothing was committed.
            ConfigurationError: a column or layout does not fit.
            ConsistencyError: the name is a cube's or a view's.
            CommitConflictError: another run changed the table meanwhile; nothing was committed.

        Examples:
            >>> more = pa.table({"flight": [2, 3], "fare": [155.0, 80.0]})
            >>> store.write_table("fares", more, "merge", key=["flight"]).rows
            3
        """
        from ktk_engine.api.write_table import write_table

        layout = {"partition_by": partition_by, "indexes": indexes, "clustered_by": clustered_by}
        with explaining_fixes(frame):
            write_table(self, name, frame, mode, key, layout, metadata or {})
        with after_commit(name):
            return self.table(name)

    def drop(self, name: str) -> None:
        """Drop a cube with all its datasets, or a table, in one commit; files stay at first.

        Args:
            name: the cube or the table. `ktk undrop` and `ktk restore` bring it back until the
                clean-up has taken its files.

        Raises:
            DatasetNotFoundError: there is no such cube or table.
            CommitConflictError: another run changed it meanwhile; nothing was removed.

        Examples:
            >>> store.drop("fares")
            >>> store.tables()
            []
        """
        remove(self._store, name, history=python_history(), cascade=True)

    def cleanup(
        self,
        name: str,
        older_than: timedelta = _WEEK,
        keep_versions: int = 10,
        *,
        delete: bool = False,
    ) -> Garbage:
        """List the files of a cube or table that no version to be kept needs, or delete them.

        Args:
            name: the cube or table, even one that any program has removed.
            older_than: versions that were the newest one within this time are kept. Files that
                another program left have to be older too, and 7 days old at least.
            keep_versions: the smallest number of newest versions to keep; tagged ones always stay.
            delete: delete them; otherwise nothing is changed.

        Returns:
            What goes, or would go: `objects`, with key and size each, and `bytes` of all.

        Raises:
            DatasetNotFoundError: there is no such cube or table.
            ConfigurationError: `keep_versions` is not above 0.
            ForeignWriterError: it is unclear which files are needed; nothing was deleted.
            StoreError: not everything could be deleted; what is left, the next clean-up deletes.

        Examples:
            >>> len(store.cleanup("trips").objects)
            0
        """
        if not isinstance(older_than, timedelta):
            raise ConfigurationError(
                f"older_than must be a timedelta, for instance timedelta(days=7), but is "
                f"{older_than!r}. Nothing was deleted."
            )
        if keep_versions < 1 or older_than < timedelta(0):
            raise ConfigurationError("A clean-up keeps at least 1 version, and no age below 0.")
        scope, retention = scope_to_clean(self._store, name), Retention(older_than, keep_versions)
        if not delete:
            return plan_cleanup(self._store, scope, retention)
        done = run_cleanup(self._store, scope, retention, python_history())
        if done.warning:
            raise ForeignWriterError("Nothing was deleted: ", done.warning, ".")
        return done.garbage

    def relation(
        self,
        name: str,
        *,
        version: int | str | None = None,
        timestamp: date | str | None = None,
    ) -> Cube | Table:
        """Open a cube or a plain table, whichever has the name; see `cube` and `table`.

        Examples:
            >>> store.relation("fares")
            Table('fares', version=1)
        """
        loaded = open_relation(self._store, name, version, timestamp, self._cache)
        return Cube(self, loaded) if isinstance(loaded, LoadedCube) else Table(self, loaded)

    def _present(self, *, cubes: bool) -> list[str]:
        """Names of the cubes, or of the tables, that have a dataset."""
        logged = set(list_scopes(self._store))

        def name_of(item: tuple[LogScope, list[str]]) -> str:
            # What only documents name exists: they need not be read, which may be long.
            is_there = item[0] not in logged or resolve(self._store, *item).datasets
            return item[0].name if is_there else ""

        found = present_scopes(self._store).items()
        wanted = [item for item in found if (item[0].kind == "cube") is cubes]
        return list(filter(None, ask_all(self._store, name_of, wanted)))


def _without_index(
    said: str, named: Collection[str], dimension_columns: Sequence[str]
) -> tuple[str, ...]:
    """Dimension columns of the seed dataset that get no index."""
    if said not in ("always", "never"):
        raise ConfigurationError(
            f"index_dimensions must be always or never, but is {said!r}. Nothing was written."
        )
    without = names_of("suppress_index_on", named)
    if said == "always":
        return without
    if without:
        raise ConfigurationError(
            "index_dimensions says that no dimension column has an index, and suppress_index_on "
            "names some that have none. Give one of the two. Nothing was written."
        )
    return names_of("dimension_columns", dimension_columns)
