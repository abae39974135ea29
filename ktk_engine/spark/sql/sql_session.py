"""A Spark session whose statements see the relations of stores.

See docs/design/statements.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import functions as F

from ktk_engine.catalog.catalog import Relation, by_name, find_relation, list_relations, read_view
from ktk_engine.catalog.source_address import FileAddress, StoreAddress, parse_address
from ktk_engine.catalog.view import ViewDocument
from ktk_engine.conditions.condition import TrueCondition
from ktk_engine.errors import DatasetNotFoundError, QueryError
from ktk_engine.files.metadata_cache import MetadataCache
from ktk_engine.log.scope import LogScope, cube_scope, scope_of
from ktk_engine.log.snapshot import Snapshot
from ktk_engine.log.state import State, resolve
from ktk_engine.plan.plan import Plan
from ktk_engine.plan.plan_cube import LoadedCube, load_cube
from ktk_engine.plan.plan_dataset import plan_dataset
from ktk_engine.spark.arrow_types import spark_schema, spark_type
from ktk_engine.spark.frames import empty_frame
from ktk_engine.spark.jvm import optimized_plan_json, time_zone_of_thread
from ktk_engine.spark.read.join import run_plan
from ktk_engine.spark.read.plan_frame import plan_frame
from ktk_engine.spark.read.scan import Scanner
from ktk_engine.spark.session.scratch import local_path
from ktk_engine.spark.sql.bind import Reference, Statement, parse_statement, rename
from ktk_engine.spark.sql.command import query_frame
from ktk_engine.spark.sql.cube_usage import CubeUsage, read_usage
from ktk_engine.spark.sql.moment import Moment, moment_of
from ktk_engine.spark.sql.read_files import read_files
from ktk_engine.store.interface import ObjectStore
from ktk_engine.store.warehouse import is_store_address
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.quote import quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MARKER = "__ktk_cube"
_DEEPEST_VIEW = 50

OpenSchema = Callable[[str], ObjectStore | None]
# Where a statement names a relation: the number of the reference, through views.
_Path: TypeAlias = tuple[int, ...]


@dataclass
class SqlSession:
    """Runs statements that name relations as `schema.name`, or with an address before that.

    Attributes:
        session: a classic Spark session of one thread.
        open_schema: gives the store of a schema, None if there is no such schema; also the store
            at an address.
        scratch: folder of this process for manifests.
        plans: the plans of the cubes that the last statement read.
    """

    session: SparkSession
    open_schema: OpenSchema
    scratch: Path
    plans: list[Plan] = field(default_factory=list)
    _registered: dict[str, str] = field(default_factory=dict)
    _known: dict[str, MetadataCache] = field(default_factory=dict)
    _snapshots: dict[tuple[str, LogScope], dict[str, Snapshot]] = field(default_factory=dict)
    # Spark keeps the text of these, and reads it again wherever they are named.
    _temporary: dict[tuple[str, ...], Statement] = field(default_factory=dict)

    def parse(self, text: str) -> Statement:
        """Parse a statement; see `parse_statement`."""
        return parse_statement(self.session, text)

    def sql(
        self, statement: str | Statement, args: dict[str, Any] | list[Any] | None = None
    ) -> DataFrame:
        """Run a statement, each of its cubes planned for it.

        Args:
            statement: a text or what was parsed; relations that no store knows are left to Spark.
            args: values of its parameters, by name (`:name`) or by position (`?`).

        Returns:
            Spark's answer; of a query nothing is computed yet.
        """
        if isinstance(statement, str):
            statement = self.parse(statement)
        binding = _Binding(self)
        self.plans = binding.plans
        frame = self.session.sql(binding.plan(statement, args), args)
        if statement.creates:
            self._temporary[statement.creates] = statement
        return frame

    def temporary_view(self, parts: tuple[str, ...]) -> Statement | None:
        """Give the statement that created a temporary view, None for all other names."""
        return self._temporary.get(tuple(part.casefold() for part in parts))

    def query_of(self, command: Statement) -> DataFrame:
        """Give the rows of a command's query (`create table ... as`, `insert ...`).

        Args:
            command: a command with a query; the command itself is not run.
        """
        binding = _Binding(self)
        self.plans = binding.plans
        return query_frame(self.session, binding.plan(command))

    def scanner(self, store: ObjectStore) -> Scanner:
        """Give what makes relations over a store's files in this session."""
        footers = self.metadata_cache(store).footers
        return Scanner(self.session, store, self.scratch, footers)

    def metadata_cache(self, store: ObjectStore) -> MetadataCache:
        """Give what is known of a store's files from other statements."""
        return self._known.setdefault(store.url, MetadataCache())

    def snapshots_of(self, state: State) -> dict[str, Snapshot]:
        """Give the snapshots that are known from other statements and still are the newest."""
        current = {item.entry.snapshot for item in state.datasets.values() if item.entry}
        before = self._snapshots.get((state.store.url, state.scope), {})
        kept = {key: snapshot for key, snapshot in before.items() if key in current}
        self._snapshots[state.store.url, state.scope] = kept
        return kept

    def register(self, name: str, version: str, frame: Callable[[], DataFrame]) -> str:
        """Make a temporary view, unless the session has this version of it already.

        Args:
            name: the view's name.
            version: what the frame depends on; empty to make it again each time.
            frame: gives the frame.

        Returns:
            The name.
        """
        if not version or self._registered.get(name) != version:
            frame().createOrReplaceTempView(quote_identifier(name))
            self._registered[name] = version
        return name


def _address(reference: Reference) -> FileAddress | StoreAddress | None:
    """Where a relation outside the warehouse lies."""
    return parse_address(reference.parts[0]) if len(reference.parts) == 3 else None


def _check_depth(path: _Path) -> None:
    if len(path) > _DEEPEST_VIEW:
        raise QueryError("Views refer to each other in a circle.")


@dataclass
class _Binding:
    """The relations of one statement, all read at one version of each scope."""

    owner: SqlSession
    plans: list[Plan] = field(default_factory=list)
    _catalogs: dict[str, dict[str, list[Relation]] | None] = field(default_factory=dict)
    _states: dict[tuple[str, LogScope, Moment | None], State] = field(default_factory=dict)
    _views: dict[tuple[str, str], tuple[ViewDocument, Statement | None]] = field(
        default_factory=dict
    )
    _cubes: dict[tuple[str, str, Moment | None], LoadedCube] = field(default_factory=dict)
    _usages: dict[_Path, CubeUsage | None] = field(default_factory=dict)
    _markers: dict[_Path, tuple[str, LoadedCube]] = field(default_factory=dict)
    _probes: bool = False
    _named: dict[str, _Path] = field(default_factory=dict)
    _files: set[str] = field(default_factory=set)
    _renewed: set[tuple[str, ...]] = field(default_factory=set)

    def plan(self, statement: Statement, args: dict[str, Any] | list[Any] | None = None) -> str:
        """Bind a statement, each of its cubes planned for what it reads of them.

        Args:
            statement: the statement.
            args: values of its parameters.

        Returns:
            See `bind`.
        """
        if statement.has_query and self.reads_cube(statement):
            self.probe(statement, args)
        return self.bind(statement)

    def bind(
        self,
        statement: Statement,
        within: str = "",
        path: _Path = (),
        reader: tuple[str, ...] = (),
    ) -> str:
        """Register every relation that a statement names and give its text with their names.

        Args:
            statement: the statement.
            within: whose view it is: a schema, or the address of a store; empty for none.
            path: the place where it is named, as a view; empty for the statement itself.
            reader: the temporary view that it is in, if there is one.
        """
        _check_depth(path)
        names, reader = {}, statement.creates or reader
        for number, reference in enumerate(statement.references):
            address = _address(reference)
            if isinstance(address, FileAddress):
                names[reference] = self._register_files(reference, address)
                continue
            found = self._find(reference, within)
            if found is not None:
                moment = moment_of(reference, time_zone_of_thread(self.owner.session))
                schema, relation = found
                names[reference] = self._register(schema, relation, moment, (*path, number), reader)
            else:
                self._renew(reference)
        return rename(statement, names)

    def _renew(self, reference: Reference) -> None:
        """Let a temporary view that a statement created see the newest version of what it reads.

        It is planned for its own query: this statement may need other rows of the same cube.
        """
        created = self.owner.temporary_view(reference.parts)
        if created is not None and created.creates not in self._renewed:
            self._renewed.add(created.creates)
            replace(self, _usages={}, _markers={}, _named={}, _probes=False).plan(created)

    def reads_cube(self, statement: Statement, within: str = "", path: _Path = ()) -> bool:
        """Whether a statement reads a cube, itself or through views.

        Args:
            statement: the statement.
            within: as for `bind`.
            path: as for `bind`.
        """
        _check_depth(path)
        for number, reference in enumerate(statement.references):
            found = self._find(reference, within)
            if found is None or found[1].kind != "view":
                continue
            schema, relation = found
            view, inner = self._view(schema, relation.name)
            if view.kind == "cube":
                return True
            if inner is not None and self.reads_cube(inner, schema, (*path, number)):
                return True
        return False

    def probe(self, statement: Statement, args: dict[str, Any] | list[Any] | None) -> None:
        """Let Spark optimise the statement over empty cubes, and read what it needs of them.

        Each place where it names a cube gets a plan of its own.
        """
        session = self.owner.session
        probing = replace(self, _probes=True, _markers={})
        text = probing.bind(statement)
        frame = session.sql(text, args) if statement.is_query else query_frame(session, text)
        plan = optimized_plan_json(frame)
        zone = time_zone_of_thread(session)
        for path, (marker, loaded) in probing._markers.items():
            self._usages[path] = read_usage(plan, marker, loaded.schema, zone)

    def _find(self, reference: Reference, within: str) -> tuple[str, Relation] | None:
        """The relation that a name means, with its schema or the address of its store."""
        address = _address(reference)
        if isinstance(address, StoreAddress):
            return address.store, self._outside(reference, address)
        if len(reference.parts) != 2:
            return None
        schema, name = reference.parts
        if is_store_address(within):  # a view there means the schemas beside its own
            schema = f"{within.rstrip('/').rpartition('/')[0]}/{schema}"
        catalog = self._catalog(schema)
        relation = find_relation(catalog, name) if catalog is not None else None
        return None if relation is None else (schema, relation)

    def _outside(self, reference: Reference, address: StoreAddress) -> Relation:
        catalog = self._catalog(address.store) or {}
        relation = find_relation(catalog, address.relation)
        if relation is None:
            hint = did_you_mean(address.relation, catalog, "{}")
            known = ", ".join(item.uuid or item.name for r in catalog.values() for item in r)
            raise DatasetNotFoundError(
                f"{'.'.join(reference.parts[1:])}: the store {address.store} has no "
                f"{address.relation.replace(':', ' ')}.{hint} It has: {known or 'nothing'}."
            )
        return relation

    def _catalog(self, schema: str) -> dict[str, list[Relation]] | None:
        if schema not in self._catalogs:
            store = self.owner.open_schema(schema)
            self._catalogs[schema] = None if store is None else by_name(list_relations(store))
        return self._catalogs[schema]

    def _store(self, schema: str) -> ObjectStore:
        store = self.owner.open_schema(schema)
        assert store is not None
        return store

    def _state(self, schema: str, scope: LogScope, moment: Moment | None) -> State:
        key = (schema, scope, moment)
        if key not in self._states:
            if moment is not None:
                self._states[key] = moment.of(self._state(schema, scope, None))
            else:
                state = resolve(self._store(schema), scope)
                self._states[key] = replace(state, known=self.owner.snapshots_of(state))
        return self._states[key]

    def _view(self, schema: str, name: str) -> tuple[ViewDocument, Statement | None]:
        key = (schema, name)
        if key not in self._views:
            view = read_view(self._store(schema), name)
            if view is None:
                raise QueryError(f"View {schema}.{name} was dropped while the statement started.")
            inner = parse_statement(self.owner.session, view.sql) if view.kind == "view" else None
            self._views[key] = (view, inner)
        return self._views[key]

    def _cube(self, schema: str, name: str, moment: Moment | None) -> LoadedCube:
        key = (schema, name, moment)
        if key not in self._cubes:
            view, _ = self._view(schema, name)
            scope = cube_scope(view.cube)
            state = self._state(schema, scope, moment)
            datasets = view.datasets
            if moment is not None:  # some may be younger
                datasets = tuple(d for d in datasets if scope.uuid_of(d) in state.datasets)
            known = self.owner.metadata_cache(state.store)
            self._cubes[key] = load_cube(state, datasets, None, known)
        return self._cubes[key]

    def _register(
        self,
        schema: str,
        relation: Relation,
        moment: Moment | None,
        path: _Path,
        reader: tuple[str, ...],
    ) -> str:
        """Register a relation under a name of its own for each temporary view that reads it.

        Other statements register it with the rows that they need, which are too few for the view.
        So do other places of the same statement: views and cubes have a name for each.
        """
        parts = (schema, relation.uuid or relation.name, *reader)
        name = ".".join(part if part.isidentifier() else quote_identifier(part) for part in parts)
        if moment is not None:
            name = f"{name} {moment}"
        if relation.kind == "dataset":
            return self._register_dataset(schema, relation, moment, name)
        if self._named.setdefault(name, path) != path:
            name = f"{name} at {'.'.join(map(str, path))}"
        view, inner = self._view(schema, relation.name)
        if view.kind == "cube":
            loaded = self._cube(schema, relation.name, moment)
            return self.owner.register(name, "", lambda: self._cube_frame(loaded, path))
        assert inner is not None
        if moment is not None:
            raise QueryError(
                f"{schema}.{relation.name} is a view, which has no versions. Write `{moment}` "
                "after the tables and cubes that it reads."
            )
        bound = self.bind(inner, schema, path, reader)
        return self.owner.register(name, "", lambda: self.owner.session.sql(bound))

    def _register_dataset(
        self, schema: str, relation: Relation, moment: Moment | None, name: str
    ) -> str:
        state = self._state(schema, scope_of(relation.uuid), moment)
        snapshot = state.snapshot(relation.uuid)
        entry = state.datasets[relation.uuid].entry
        foreign = state.datasets[relation.uuid].foreign
        version = f"{state.store.url}:{foreign or (entry and entry.snapshot)}"
        plan = plan_dataset(snapshot, state.version)
        return self.owner.register(
            name, version, lambda: run_plan(self.owner.scanner(state.store), plan)
        )

    def _register_files(self, reference: Reference, address: FileAddress) -> str:
        """Look at the files once per statement: they may change at any time."""
        name = str(address)
        if name not in self._files:
            people_say = ".".join(reference.parts[1:])
            session = self.owner.session
            self.owner.register(name, "", lambda: read_files(session, address, people_say))
            self._files.add(name)
        return name

    def _cube_frame(self, loaded: LoadedCube, path: _Path) -> DataFrame:
        if self._probes:
            marker = f"{_MARKER}_{len(self._markers)}"
            self._markers[path] = (marker, loaded)
            return self._empty_frame(loaded, marker)
        everything = CubeUsage(frozenset(loaded.schema.names), TrueCondition())
        usage = self._usages.get(path, everything)
        if usage is None:
            return empty_frame(self.owner.session, spark_schema(loaded.schema))
        return self._planned_frame(loaded, usage)

    def _empty_frame(self, loaded: LoadedCube, marker: str) -> DataFrame:
        """The cube's columns over no files, marked so that the plan shows where it stands.

        A relation of files, since Spark would optimise an empty local one away.
        """
        folder = self.owner.scratch / "empty"
        folder.mkdir(parents=True, exist_ok=True)
        schema = spark_schema(loaded.schema).add(marker, "boolean")
        frame = self.owner.session.read.schema(schema).parquet(local_path(folder))
        return frame.drop(marker)

    def _planned_frame(self, loaded: LoadedCube, usage: CubeUsage) -> DataFrame:
        """The planned rows; columns that the statement does not need are null."""
        needed = [name for name in loaded.schema.names if name in usage.columns]
        fallback = list(loaded.specification.dimension_columns[:1])
        plan = loaded.plan(needed or fallback, usage.condition)
        plan = replace(plan, ignored=usage.ignored)
        self.plans.append(plan)
        frame = plan_frame(self.owner.scanner(loaded.state.store), plan, compute_small=True)
        columns = [
            quote_identifier(f.name)
            if f.name in needed
            else F.lit(None).cast(spark_type(f.type)).alias(f.name)
            for f in loaded.schema
        ]
        return frame.select(*columns)
