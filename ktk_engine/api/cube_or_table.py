"""What cubes and tables have in common: versions, tags, indexes, and what is known about them."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, NoReturn, Self

import pyarrow as pa

from ktk_engine.api.changes import Changes, History, changes_between
from ktk_engine.api.names_elsewhere import OF_CUBE_OR_TABLE, unknown_attribute
from ktk_engine.api.opened_store import OpenedStore
from ktk_engine.api.prepared import Prepared
from ktk_engine.api.query import Query, Types
from ktk_engine.catalog.find_scope import find_scope
from ktk_engine.conditions.condition import Condition
from ktk_engine.conditions.parameters import bind
from ktk_engine.describe.history import history_of, read_history
from ktk_engine.describe.info import describe_state
from ktk_engine.formatting import parse_size
from ktk_engine.log.change.after_commit import after_commit
from ktk_engine.log.state import State
from ktk_engine.log.version import parse_moment, tags_of
from ktk_engine.maintain.check import check
from ktk_engine.maintain.compactable import TARGET_BYTES, find_compactions
from ktk_engine.maintain.index import change_indexes
from ktk_engine.maintain.publish_documents import publish_documents
from ktk_engine.maintain.rename import rename
from ktk_engine.maintain.versions.restore import restore
from ktk_engine.maintain.versions.tag import delete_tag, tag_state
from ktk_engine.plan.cube_query import CubeQuery
from ktk_engine.plan.plan_cube import LoadedCube
from ktk_engine.plan.plan_table import LoadedTable
from ktk_engine.progress import Progress, telling
from ktk_engine.publish.publish_datasets import (
    check_formats,
    publish_datasets,
    stop_publishing,
)
from ktk_engine.warehouse.actor import python_history

if TYPE_CHECKING:
    import pandas as pd


class CubeOrTable(ABC):
    """A cube or a table at one version."""

    _store: OpenedStore
    _loaded: LoadedCube | LoadedTable

    def __repr__(self) -> str:
        """Show name and version."""
        return f"{type(self).__name__}({self.name!r}, version={self.version})"

    if not TYPE_CHECKING:  # a type checker finds unknown names itself

        def __getattr__(self, name: str) -> NoReturn:
            """Say how to get what other libraries have under this name."""
            raise unknown_attribute(self, name, OF_CUBE_OR_TABLE)

    def __bool__(self) -> bool:
        """Always true, even without rows."""
        return True

    def __len__(self) -> NoReturn:
        """Refuse, since counting may read files."""
        raise TypeError(f"{type(self).__name__!r} object has no len(): use .query().count()")

    def _repr_html_(self) -> str:
        """Show datasets, layout and columns, in a notebook."""
        from ktk_engine.describe.as_html import cube_html

        return cube_html(describe_state(self._state))

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in the store."""

    @abstractmethod
    def _open(self, name: str, version: int | str | None, moment: date | str | None) -> Self:
        """Open one of the same kind."""

    @property
    def _state(self) -> State:
        return self._loaded.state

    @property
    def schema(self) -> pa.Schema:
        """Columns in order, in the types of their classes."""
        return self._loaded.schema

    @property
    def version(self) -> int:
        """Version of its log; 0 for what another program wrote."""
        return self._state.version

    def at(self, version: int | str | None = None, timestamp: date | str | None = None) -> Self:
        """Open it at another version; all datasets of a cube are of that one.

        Args:
            version: number of a commit, or a tag; default: the newest.
            timestamp: instead of a version, the moment as of which it is read.

        Raises:
            VersionGoneError: there is no such version, or a clean-up removed it; the message says
                which are left.
            QueryError: both are given, or `timestamp` is not a date or time.

        Examples:
            >>> cube.delete("dest = 'LAX'").at(1).query().count()
            3
        """
        return self._open(self.name, version, timestamp)

    @abstractmethod
    def _of(self, state: State) -> Self:
        """Open it at a state that is known."""

    def _changed(self, state: State | None = None) -> Self:
        """Open it after a change, from the commit where that knows the new state."""
        with after_commit(self.name):
            return self.at() if state is None else self._of(state)

    def restore(
        self, version: int | str | None = None, timestamp: date | str | None = None
    ) -> Self:
        """Make an earlier version the newest one again, as one commit; no data is written.

        Args:
            version: number of the commit to go back to, or a tag.
            timestamp: instead of a version, a moment: the last commit until then counts.

        Returns:
            It at its new version.

        Raises:
            VersionGoneError: there is no such version, or a clean-up removed it.
            ConsistencyError: nothing would change.
            CommitConflictError: another run changed it meanwhile; nothing was committed.

        Examples:
            >>> cube.delete("dest = 'LAX'").restore(1)
            Cube('trips', version=3)
        """
        restore(self._state.store, self.name, version, parse_moment(version, timestamp))
        return self._changed()

    def tag(self, name: str) -> None:
        """Name this version, so that no clean-up takes it as long as it has the name.

        `at`, `Store.cube`, `Store.table` and SQL accept the name in place of a number.

        Args:
            name: for instance `2026-q1`; nothing that looks like a number.

        Raises:
            ConfigurationError: the name cannot be a tag.
            ConsistencyError: another version has the name.
            VersionGoneError: a clean-up has taken files of this version.
            CommitConflictError: the name was given, or a clean-up ran, meanwhile.

        Examples:
            >>> cube.tag("2026-q1")
            >>> cube.at("2026-q1").version
            1
        """
        tag_state(self._state, name, python_history())

    def untag(self, name: str) -> None:
        """Remove a name from the version that has it.

        Raises:
            VersionGoneError: no version has it.

        Examples:
            >>> cube.tag("2026-q1")
            >>> cube.untag("2026-q1")
            >>> cube.tags()
            {}
        """
        delete_tag(self._state.store, self.name, name, python_history())

    def tags(self) -> dict[str, int]:
        """Names of versions and their numbers, as they are now.

        Examples:
            >>> cube.tag("2026-q1")
            >>> cube.tags()
            {'2026-q1': 1}
        """
        return dict(tags_of(find_scope(self._state.store, self.name, removed=True)))

    def index(self, *columns: str, dataset: str | None = None) -> Self:
        """Give columns a secondary index, as one commit that rewrites no data file.

        Args:
            columns: their names. One that is indexed already stays so.
            dataset: id of the only dataset of a cube to index; None for every one that has the
                column.

        Returns:
            It at its newest version.

        Raises:
            ConfigurationError: a column does not exist, is a partition column, or of a class that
                cannot be indexed.
            DataError: a row has no value in the column.
            CommitConflictError: another run removed a dataset or column; nothing was committed.

        Examples:
            >>> cube.index("origin_name")
            Traceback (most recent call last):
            ...
            ktk_engine.errors.ConfigurationError: ...
        """
        change_indexes(self._state.store, self.name, columns, dataset, python_history())
        return self._changed()

    def drop_index(self, *columns: str, dataset: str | None = None) -> Self:
        """Drop secondary indexes, as one commit; see `index`.

        A dimension column of the seed dataset becomes one of `suppress_index_on`.

        Examples:
            >>> sorted(cube.drop_index("dest").specification.index_columns)
            []
        """
        store = self._state.store
        done = change_indexes(store, self.name, columns, dataset, python_history(), drop=True)
        if not done.datasets:
            said = f"{self.name}: there is no index on {', '.join(columns)}. Nothing was changed."
            warnings.warn(said, stacklevel=2)
        return self._changed()

    def compact(
        self,
        *,
        dataset: str | None = None,
        target_size: int | str = TARGET_BYTES,
        progress: Progress | bool = False,
    ) -> Self:
        """Rewrite small and overlaid files as few large ones, one commit a dataset; rows stay.

        The old files stay for earlier versions until a clean-up.

        Args:
            dataset: id of the only dataset of a cube to compact; None means all.
            target_size: size of the new files, in bytes or as `128MB`; files below half of it are
                small.
            progress: True shows a bar on a terminal and in a notebook, for each dataset. A
                function gets the number of rows done, and about how many there are.

        Returns:
            It at its newest version; the same as before where there was nothing to do.

        Raises:
            DatasetNotFoundError: there is no such dataset.
            CommitConflictError: another run changed the same partitions meanwhile; nothing was
                committed for this dataset.
            LocalEngineError: a piece of the rows does not fit into memory.

        Examples:
            >>> table = store.write_table("fares", pa.table({"flight": [3], "fare": [80.0]}))
            >>> table.stats().files, table.compact().stats().files
            (2, 1)
        """
        from ktk_engine.maintain.compact import compact  # what writes files, readers do not need

        size = parse_size(target_size) if isinstance(target_size, str) else target_size
        for found in find_compactions(self._state.store, self.name, dataset, size):
            if found.is_needed:
                with telling(progress, f"compacting {found.uuid}") as tell:
                    compact(found, python_history(), progress=tell)
        return self._changed()

    def publish(
        self,
        formats: str | Sequence[str] | None = (),
        dataset: str | None = None,
        *,
        kartothek: bool | None = None,
    ) -> Self:
        """Let other engines read it: a Delta log, or Iceberg metadata, follows every commit.

        Args:
            formats: `delta`, `iceberg` or both, in addition to those in which it is published
                already. Without any, these are brought up to date, or it is published as Delta.
                None stops publishing. Ignored with `kartothek`.
            dataset: id of the only dataset of a cube to publish; None for all of them.
            kartothek: whether documents for Kartothek are written with each commit, as they are
                from the start. False deletes them: a commit then costs the same however many files
                there are, and no Kartothek program may run its clean-up there.

        Returns:
            It at its newest version.

        Raises:
            ConfigurationError: an unknown format.
            PublishError: a format cannot say what it holds, with the columns and what to do;
                nothing was changed.

        Examples:
            >>> cube.publish("delta", dataset="weather")
            Cube('trips', version=2)
        """
        store, said = self._state.store, python_history()
        if kartothek is not None:
            publish_documents(store, self.name, kartothek, said)
        elif formats is None:
            stop_publishing(store, self.name, dataset, said)
        else:
            publish_datasets(store, self.name, dataset, said, check_formats(formats))
        return self._changed()

    def rename(self, name: str) -> Self:
        """Rename it in its store; its history stays under the old name.

        Args:
            name: its new name.

        Returns:
            The newest version under the new name.

        Raises:
            SpecificationError: it cannot be a name.
            ConsistencyError: the name is taken, or a tag or a cube model refers to the old one.
            CommitConflictError: another run changed it meanwhile; it keeps its name.

        Examples:
            >>> cube.rename("journeys")
            Cube('journeys', version=1)
            >>> store.cubes()
            ['journeys']
        """
        rename(self._state.store, self.name, name, python_history())
        with after_commit(name):
            return self._open(name, None, None)

    @abstractmethod
    def query(
        self,
        columns: Sequence[str] | None = None,
        where: str | Condition | None = None,
        *,
        limit: int | None = None,
    ) -> Query:
        """Ask for rows."""

    def prepare(
        self,
        columns: Sequence[str] | None,
        where: str,
        *,
        limit: int | None = None,
        types: Types = "class",
    ) -> Prepared:
        """Check a query once, to ask it with many values: `prepare(...)(name=value)` is a `Query`.

        `where` names each value, for instance `flight = :flight`. The rest is as for `query`.

        Raises:
            KtkError: as for `query`; wrong values are refused by the call.

        Examples:
            >>> prepared = cube.prepare(["flight"], "dest in (:names)")
            >>> prepared(names=["LAX", "SFO"]).count(), prepared(names=["BOS"]).count()
            (3, 0)
        """

        def at(version: int | str | None, moment: date | str | None) -> Prepared:
            return self.at(version, moment).prepare(columns, where, limit=limit, types=types)

        question = CubeQuery(columns, where, limit=limit)
        return Prepared(self._store, self._loaded, question, types, at)

    def changes(
        self,
        after: int | str | CubeOrTable,
        until: int | str | None = None,
        columns: Sequence[str] | None = None,
        where: str | Condition | None = None,
        *,
        key: Sequence[str] | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> Changes:
        """Ask which rows differ between two versions; no data file is read yet.

        What happened in between does not count: a row that was changed and changed back is no
        change. Only files that one of the versions lacks are read. A row has changed if a column
        is stored otherwise: NaN equals NaN, and -0.0 differs from 0.0.

        Args:
            after: the older version, by number or tag; its own commit does not count. Readers of
                Delta's change data feed name the first version that counts instead. Another cube
                or table, perhaps of another store, is a version, too.
            until: the newer version; None means this one.
            columns: the columns that count, besides the key; None means all of the newer version.
            where: as for `query`: which rows of both versions count.
            key: columns that identify a row of a table, where no constraint `unique` or
                `primary_key` does. Without a key there are no updates. A cube has its cells.
            parameters: as for `query`.

        Returns:
            The changes, ready to be read.

        Raises:
            QueryError: an unknown column, or versions with other keys.
            VersionGoneError: a clean-up has removed one of the versions; the message says which
                are left.

        Examples:
            >>> changed = cube.append(
            ...     {"flights": pa.table({"origin": ["JFK"], "flight": [2], "dest": ["BOS"]})}
            ... )
            >>> changed.changes(after=1).to_arrow()["dest"].to_pylist()
            ['LAX', 'BOS']
        """
        newer = self if until is None else self.at(until)
        older = after if isinstance(after, CubeOrTable) else self.at(after)
        sides = [(side._store, side._loaded) for side in (older, newer)]
        return changes_between(sides[0], sides[1], key, columns, bind(where, parameters))

    def head(self, rows: int = 5) -> pd.DataFrame:
        """Return the first rows with all columns; only files that can hold one are opened.

        Args:
            rows: how many.

        Returns:
            The rows as `Query.to_pandas` gives them.

        Raises:
            ConfigurationError: pandas is not installed.

        Examples:
            >>> cube.head(2)["dest"].tolist()
            ['SFO', 'LAX']
        """
        return self.query(limit=rows).to_pandas()

    def info(self) -> dict[str, Any]:
        """Describe this version: datasets, columns, sizes, comments, the last commit.

        Returns:
            The same as `ktk info --json`: only plain dicts, lists, strings and numbers.

        Examples:
            >>> [dataset["rows"] for dataset in cube.info()["datasets"]]
            [3, 2]
        """
        return describe_state(self._state).as_dict()

    def check(self, *, deep: bool = False) -> dict[str, Any]:
        """Check the files, the log and what is published of the newest version.

        Args:
            deep: read every page of every data file, and every version of the log.

        Returns:
            The same as `ktk check --json`; `problems` is empty if all is well.

        Examples:
            >>> cube.check(deep=True)["problems"]
            ()
        """
        return check(self._state.store, self.name, deep=deep).as_dict()

    @property
    def last_changes(self) -> list[dict[str, Any]]:
        """What the commit of this version did: a dict for each dataset, as in `history`.

        `rows` are stored since then, `rows_delta` more than before. A row that a later one of the
        same cell replaces counts until `compact`. `changes` gives the rows themselves.

        Examples:
            >>> [(change["dataset"], change["rows_delta"]) for change in cube.last_changes]
            [('flights', 3), ('weather', 2)]
        """
        return [c for entry in history_of(self._state, 1) for c in entry.as_dict()["changes"]]

    def history(self, limit: int | None = None) -> History:
        """List the commits, newest first, whichever version this one is.

        Args:
            limit: the largest number of entries; None means all.

        Returns:
            The same as `ktk history --json`: a list with a dict each, which notebooks show as a
            table.

        Examples:
            >>> [entry["version"] for entry in cube.history()]
            [1]
        """
        return History(read_history(self._state.store, self.name, limit))
