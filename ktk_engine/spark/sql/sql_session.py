"""A Spark session whose statements see the relations of stores.

See docs/design/statements.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark  # noqa: F401
from pyspark.errors import AnalysisException, ParseException, PySparkException

from ktk_engine.catalog.catalog import Relation
from ktk_engine.catalog.moment import Moment, moment_of
from ktk_engine.catalog.source_address import FileAddress, parse_address
from ktk_engine.errors import ConfigurationError, QueryError
from ktk_engine.log.change.reads import Read
from ktk_engine.log.scope import scope_of
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.plan_dataset import plan_dataset
from ktk_engine.plan.statement.named_relations import (
    KnownStores,
    NamedRelations,
    OpenSchema,
    Plannable,
    check_columns_alike,
)
from ktk_engine.plan.statement.query_text import QueryText
from ktk_engine.spark.client.client import client_of
from ktk_engine.spark.read.plan_frame import is_scanned, plan_frame
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.session.session import dialect_of, reading_stored_text, run_sql, text_for
from ktk_engine.spark.sql.parquet_source import StatementFiles
from ktk_engine.spark.sql.planned_places import Place, PlannedPlaces
from ktk_engine.spark.sql.read_files import read_files
from ktk_engine.spark.sql.stored_view import read_stored_view
from ktk_engine.spark.sql.temporary_views import TemporaryViews
from ktk_engine.sql.dialect import Dialect, has_open_literals
from ktk_engine.sql.references import Reference
from ktk_engine.sql.rename import qualify, rename
from ktk_engine.sql.statement import GLOBAL_VIEWS, Statement, read_statement
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.trust import Trust, is_store_address
from ktk_engine.types.identifier import NO_NAME, Identifier, Name
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ktk_engine.log.state import State

_DEEPEST_VIEW = 50
_MOST_VIEWS = 10_000  # each takes Spark some 10 ms


@dataclass
class SqlSession:
    """Runs statements that name relations as `schema.name`, or with an address before that."""

    session: SparkSession  # used by one thread
    open_schema: OpenSchema  # see `KnownStores`
    scratch: Path  # folder for manifests
    plans: list[Plan] = field(default_factory=list)  # of the cubes that the last statement read
    current_schema: str = ""  # for names without one (`use`); empty for Spark's own
    # defines functions of the owner that a statement calls
    define_functions: Callable[[SparkSession, str], None] = lambda session, sql: None
    trust: Trust = field(default_factory=Trust)  # see `KnownStores`
    _reads: list[Read] | None = None
    # Spark keeps the text of these, and parses it again at each use.
    _temporary: dict[tuple[Identifier, ...], Statement] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stores = KnownStores(self.open_schema, self.trust)
        self.views = TemporaryViews(self.session)
        client_of(self.session).answer_at_once()

    def sql(
        self, statement: str | Statement, args: dict[str, Any] | list[Any] | None = None
    ) -> DataFrame:
        """Run a statement with parameters (`:name` or `?`), each of its cubes planned for it.

        Relations that no store knows are left to Spark. Only small answers of cubes are computed
        already.
        """
        if isinstance(statement, str):
            statement = self.read(statement)
        self.views.drop_unused()
        with self._showing(statement):
            frame = self.spark_sql(self._binding().plan(statement, args), args)
        self.views.keep_for(frame)
        if statement.creates:
            self._temporary[statement.creates.key] = statement
        return frame

    def sql_in_default(self, query: str) -> DataFrame:
        """Run a query of the default dialect, which a part of a statement that was read is."""
        return self.sql(read_statement(query))

    def schema_of(self, query: str | Statement) -> StructType:
        """Give the columns of a query without computing it."""
        statement = self.read(query) if isinstance(query, str) else query
        binding = self._binding()
        marking = replace(binding, places=binding.places.marking())
        with self._showing(statement):
            return self.spark_sql(marking.bind(statement)).schema

    @contextmanager
    def noting_reads(self) -> Iterator[list[Read]]:
        """Note the datasets that the statements of a block read.

        The list is complete after the block, with datasets of views and cubes. Plain files and
        Spark's own tables are missing, because they have no versions.
        """
        noted: list[Read] = []
        outer, self._reads = self._reads, noted
        try:
            yield noted
        finally:
            self._reads = outer
            if outer is not None:
                outer += noted

    @contextmanager
    def _showing(self, statement: Statement) -> Iterator[None]:
        """Let Spark report errors for the text that the user wrote."""
        try:
            yield
        except ParseException:
            client_of(self.session).check_syntax(text_for(self.session, statement.sql))
            raise

    def note_read(self, state: State, uuids: Iterable[str], moment: Moment | None = None) -> None:
        """Note what a statement reads; see `noting_reads`."""
        if self._reads is not None:
            said = str(moment or "")
            known = {(item.uuid, item.moment) for item in self._reads if item.state is state}
            self._reads += [Read(state, it, moment=said) for it in uuids if (it, said) not in known]

    def temporary_view(self, parts: Name) -> Statement | None:
        """Give the statement that created a temporary view; None for all other names."""
        return self._temporary.get(parts.key)

    def text_of(self, command: Statement, names: Mapping[Reference, str]) -> str:
        """Give a command's text with names of temporary views for the relations that it reads.

        `names` replaces relations by other names, without reading them.
        """
        others = tuple(item for item in command.references if item not in names)
        read = replace(self._binding(), lasting=True).names(replace(command, references=others))
        return rename(command.sql, {**read, **names})

    def _binding(self) -> _Binding:
        self.plans = []
        places = PlannedPlaces(self.session, self.scratch, self.scanner, self.plans)
        return _Binding(
            self, places, NamedRelations(self.stores), StatementFiles(self.session, self.stores)
        )

    @property
    def dialect(self) -> Dialect:
        """What text means in this session now."""
        return dialect_of(self.session)

    def read(self, sql: str) -> Statement:
        """Read a person's statement; what comes of it is in the default dialect."""
        return read_statement(self.dialect.in_default(sql) if has_open_literals(sql) else sql)

    def spark_sql(self, sql: str, args: dict[str, Any] | list[Any] | None = None) -> DataFrame:
        """Let Spark run a text of the default dialect."""
        return run_sql(self.session, sql, args)

    def complete_query(self, query: Statement) -> str:
        """Give the query of a view with a schema before each name that has none.

        Raises a `ConfigurationError` if it reads a temporary view.
        """
        schemas: dict[Reference, str] = {}
        for reference in query.references:
            name = self.completed(reference.parts)
            if self.is_temporary(name):
                raise ConfigurationError(
                    f"The query reads the temporary view {name}, which ends with this session. "
                    "Nothing was stored: write its query out (`with`), or read a table."
                )
            if len(name) > len(reference.parts):
                schemas[reference] = name[0]
        return qualify(query.sql, schemas)

    def completed(self, parts: Name) -> Name:
        """Add the current schema to a name without one, unless it is a view of this session."""
        complete = self.in_current_schema(parts)
        return parts if complete != parts and self.is_temporary(parts) else complete

    def in_current_schema(self, parts: Name) -> Name:
        """Add the current schema to a name without one, as for a new relation."""
        is_short = len(parts) == 1 and self.current_schema
        return Name((self.current_schema, *parts)) if is_short else parts

    def is_temporary(self, parts: Name) -> bool:
        """Whether a name means a temporary view of this session."""
        if len(parts) != 1:
            return len(parts) == 2 and parts.key[0] == GLOBAL_VIEWS
        try:
            return bool(self.session.catalog.getTable(quote_identifier(parts[0])).isTemporary)
        except AnalysisException:
            return False

    def scanner(self, store: ObjectStore) -> Scanner:
        """Give the scanner of a store's files in this session."""
        return Scanner(self.session, store, self.scratch, self.stores.metadata(store).footers)


def columns_of(session: SparkSession, name: Name) -> list[str]:
    """Give the columns of a relation that only Spark knows; a `QueryError` if there is none."""
    try:
        with reading_stored_text(session):  # a view may have named it
            return session.table(".".join(map(quote_identifier, name))).columns
    except PySparkException as error:
        raise QueryError(f"Spark knows no columns of {name}.") from error


def _files(reference: Reference) -> FileAddress | None:
    """The plain files behind a relation."""
    address = parse_address(reference.parts[0]) if len(reference.parts) == 3 else None
    return address if isinstance(address, FileAddress) else None


def _people_say(reference: Reference) -> str:
    """The name of a relation for users, without its address."""
    return ".".join(reference.parts[1:])


def _check_depth(path: Place) -> None:
    if len(path) > _DEEPEST_VIEW:
        raise QueryError("Views refer to each other in a circle.")


@dataclass
class _Binding:
    """The relations of one statement, as temporary views of the session."""

    owner: SqlSession
    places: PlannedPlaces
    relations: NamedRelations
    files: StatementFiles
    _named: dict[str, Place] = field(default_factory=dict)
    _files: dict[str, str] = field(default_factory=dict)
    _views: Iterator[int] = field(default_factory=itertools.count)
    _planned: dict[tuple[str, str], bool] = field(default_factory=dict)  # views, by schema and name
    _renewed: set[tuple[Identifier, ...]] = field(default_factory=set)
    _texts: QueryText | None = None
    lasting: bool = False  # whether its views are used after the statement

    def plan(self, statement: Statement, args: dict[str, Any] | list[Any] | None = None) -> str:
        """Bind a statement (see `bind`), its relations planned for what it reads of them."""
        if statement.query and self.is_planned(statement):
            self.probe(read_statement(statement.query), args)
        return self.bind(statement)

    def bind(
        self,
        statement: Statement,
        within: str = "",
        path: Place = (),
        reader: Name = NO_NAME,
    ) -> str:
        """Register every relation that a statement names and give its text with their names.

        `within` is the schema or the store address of the view that has the statement, `path` the
        place of that view, and `reader` the temporary view around it; empty if there is none.
        """
        return rename(statement.sql, self.names(statement, within, path, reader))

    def names(
        self,
        statement: Statement,
        within: str = "",
        path: Place = (),
        reader: Name = NO_NAME,
    ) -> dict[Reference, str]:
        """Register every relation that a statement names; see `bind`."""
        _check_depth(path)
        if next(self._views) > _MOST_VIEWS:
            raise QueryError(
                f"The statement reads more than {_MOST_VIEWS:,} views, each place of a view "
                "counted. Nothing was computed. Write some of them as tables."
            )
        self.owner.define_functions(self.owner.session, statement.sql)
        names: dict[Reference, str] = {}
        reader = statement.creates or reader
        for number, reference in enumerate(statement.references):
            address = _files(reference)
            if address is not None:
                names[reference] = self._register_files(reference, address, (*path, number))
                continue
            found = self.find(reference, within)
            if found is not None:
                moment = self._moment(reference)
                schema, relation = found
                names[reference] = self._register(schema, relation, moment, (*path, number), reader)
            else:
                if within and self.owner.is_temporary(reference.parts):
                    raise QueryError(
                        f"A view in {within} reads `{reference.parts}`, which is only a temporary "
                        "view of this session, and no view reads those. Nothing was computed."
                    )
                self._renew(reference)
        return names

    def find(self, reference: Reference, within: str) -> tuple[str, Relation] | None:
        """Find what a name means; see `NamedRelations.find`."""
        parts = reference.parts
        if not within:
            parts = self.owner.completed(parts)
        elif len(parts) == 1 and not is_store_address(within):
            parts = Name((within, *parts))  # not a temporary view of who reads the view
        return self.relations.find(parts, within)

    def _moment(self, reference: Reference) -> Moment | None:
        """The version that the statement names."""
        zone = self.owner.dialect.zone if reference.timestamp else ""
        return moment_of(reference.parts, reference.version, reference.timestamp, zone)

    def _renew(self, reference: Reference) -> None:
        """Refresh a temporary view that a statement created, so that it reads the newest versions.

        It is planned for its own query: this statement may need other rows of the same cube.
        """
        created = self.owner.temporary_view(reference.parts)
        if created is not None and created.creates.key not in self._renewed:
            self._renewed.add(created.creates.key)
            places = replace(self.places, _usages={}, _marked=None)
            replace(self, places=places, _named={}, _texts=None).plan(created)

    def is_planned(self, statement: Statement, within: str = "", path: Place = ()) -> bool:
        """Whether a statement reads what is planned for it, itself or through views.

        That is each cube, and each dataset and source of files that Spark's own reader does not
        read, or would read without choosing columns and row groups.
        """
        _check_depth(path)
        for number, reference in enumerate(statement.references):
            address = _files(reference)
            if address is not None:
                source = self.files.source(address, _people_say(reference))
                if source is not None and source.obstacle:
                    return True
                continue
            found = self.find(reference, within)
            if found is None:
                continue
            schema, relation = found
            if relation.kind != "view":
                moment = self._moment(reference)
                state = self.relations.state(schema, scope_of(relation.uuid), moment)
                if not self._is_scanned(state, relation.uuid):
                    return True
                continue
            view = self.relations.view(schema, relation.name)
            if view.kind == "cube":
                return True
            key = (schema, relation.name)
            if key not in self._planned:
                query = self.relations.query(schema, relation.name)
                self._planned[key] = self.is_planned(query, schema, (*path, number))
            if self._planned[key]:
                return True
        return False

    def probe(self, query: Statement, args: dict[str, Any] | list[Any] | None) -> None:
        """Let Spark optimize a query over empty relations to learn what each place needs of them.

        If Spark shows no plans, the text of the query decides.
        """
        session = self.owner.session
        client = client_of(session)
        marking = self.places.marking()
        if not client.shows_plans:
            views = QueryText(partial(columns_of, session))
            bound = replace(self, places=marking, _texts=views).bind(query)
            self.places.learn_from_text(marking, bound, views)
            return
        frame = self.owner.spark_sql(replace(self, places=marking).bind(query), args)
        self.places.learn(marking, *client.optimized_plan(frame))

    def _register(
        self,
        schema: str,
        relation: Relation,
        moment: Moment | None,
        path: Place,
        reader: Name,
    ) -> str:
        """Register a relation under a separate name for each temporary view that reads it.

        Other statements register it with only the rows that they need, too few for the view. Other
        places of the same statement do so too: views and planned relations have a name for each.
        """
        parts = (schema, relation.uuid or relation.name, *reader)
        name = ".".join(part if part.isidentifier() else quote_identifier(part) for part in parts)
        if moment is not None:
            name = f"{name} {moment}"
        if relation.kind == "dataset":
            return self._register_dataset(schema, relation, moment, path, name, reader)
        name = self._name_at(path, name)
        view = self.relations.view(schema, relation.name)
        if view.kind == "cube":
            cube = self.relations.cube(schema, relation.name, moment)
            state = self.relations.cube_state(schema, view, moment)
            wanted = [state.scope.uuid_of(name) for name in view.datasets] or [*state.datasets]
            for uuid in wanted:
                if uuid in state.datasets:  # some may be younger than the moment
                    self.owner.note_read(state.holding(uuid), (uuid,), moment)
            return self._register_planned(path, cube, name, reader)
        if moment is not None:
            raise QueryError(
                f"{schema}.{relation.name} is a view, which has no versions. Write `{moment}` "
                "after the tables and cubes that it reads."
            )
        query = self.relations.query(schema, relation.name)
        names = self.names(query, schema, path, reader)
        if self._texts is not None:
            return self._texts.view(rename(query.sql, names))
        view_name, is_own = f"{schema}.{relation.name}", self.owner.trust.is_own(schema)
        session, lasting = self.owner.session, self.lasting or bool(reader)
        with reading_stored_text(session):
            frame = read_stored_view(session, view_name, query, names, is_foreign=not is_own)
            return self.owner.views.register(name, "", lambda: frame, lasting=lasting)

    def _register_planned(
        self, path: Place, relation: Plannable, name: str, reader: Name = NO_NAME
    ) -> str:
        name, version = self.places.view(path, relation, name)
        if self._texts is not None:
            return self.places.marker(path)
        lasting = self.lasting or bool(reader)
        make = partial(self.places.frame, path, relation)
        return self.owner.views.register(name, version, make, lasting=lasting)

    def _name_at(self, path: Place, name: str) -> str:
        """Name what a place reads; other places of the statement have other names."""
        if self._named.setdefault(name, path) != path:
            return f"{name} at {'.'.join(map(str, path))}"
        return name

    def _register_dataset(
        self,
        schema: str,
        relation: Relation,
        moment: Moment | None,
        path: Place,
        name: str,
        reader: Name,
    ) -> str:
        state = self.relations.state(schema, scope_of(relation.uuid), moment)
        self.owner.note_read(state, (relation.uuid,), moment)
        if self.places.knows(path) and not self._is_scanned(state, relation.uuid):
            dataset = self.relations.dataset(schema, relation.uuid, moment)
            name = self._name_at(path, name)
            return self._register_planned(path, dataset, name, reader)
        entry = state.datasets[relation.uuid].entry
        foreign = state.datasets[relation.uuid].foreign
        version = f"{state.store.url}:{foreign or (entry and entry.snapshot)}"
        snapshot = state.snapshot(relation.uuid)
        check_columns_alike(f"{schema}.{relation.name}", snapshot.schema)
        scanner = self.owner.scanner(state.store)
        return self.owner.views.register(
            name, version, lambda: plan_frame(scanner, plan_dataset(snapshot, state.version))
        )

    def _is_scanned(self, state: State, uuid: str) -> bool:
        """Whether Spark's own reader gives a dataset's rows; else its place is planned."""
        return is_scanned(self.owner.scanner(state.store), state.snapshot(uuid))

    def _register_files(self, reference: Reference, address: FileAddress, path: Place) -> str:
        """Open the files once per statement: they may change at any time."""
        source, name = self.files.source(address, _people_say(reference)), str(address)
        if source is not None and source.obstacle:
            return self._register_planned(path, source.plannable(), self._name_at(path, name))
        if name not in self._files:
            session = self.owner.session
            said = _people_say(reference)
            frame = read_files(session, address, said) if source is None else source.frame
            self._files[name] = self.owner.views.register(name, "", lambda: frame)
        return self._files[name]
