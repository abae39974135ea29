"""The methods that materializations call: each writes one relation."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from dbt.adapters.base import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.connection import AdapterRequiredConfig
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.events.types import AdapterEventWarning
from dbt_common.events.functions import warn_or_error
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from dbt.adapters.ktk.config.constraints import check_lengths
from dbt.adapters.ktk.config.foreign_configs import hints, without_key
from dbt.adapters.ktk.config.incremental import STRATEGIES
from dbt.adapters.ktk.config.model_config import DatasetConfig, ModelConfig, with_fitting_types
from dbt.adapters.ktk.config.skip_unchanged import skip_unchanged_of
from dbt.adapters.ktk.connections import KtkCursor
from dbt.adapters.ktk.errors import translated
from dbt.adapters.ktk.materialize.computed_from import note_computed
from dbt.adapters.ktk.materialize.findings_file import findings_file
from dbt.adapters.ktk.materialize.outcome import KtkResponse, response_of
from dbt.adapters.ktk.materialize.published import published
from dbt.adapters.ktk.materialize.seed_file import (
    preview,
    read_seed,
    seed_delimiter,
    seed_ragged,
    seed_types,
)
from dbt.adapters.ktk.materialize.unchanged import Unchanged
from dbt.adapters.ktk.materialize.write_dataset import write_dataset
from dbt.adapters.ktk.operations.cube_query import plan_line
from dbt.adapters.ktk.relation import KtkRelation
from dbt.adapters.ktk.session.functions import Function
from dbt.adapters.ktk.voice import DBT
from ktk_engine.errors import LocalEngineError
from ktk_engine.formatting import counted
from ktk_engine.gate.ownership import check_builder
from ktk_engine.log.change.reads import Reads
from ktk_engine.log.state import resolve
from ktk_engine.messages import spoken
from ktk_engine.sql.statement import read_statement
from ktk_engine.store.interface import ObjectStore
from ktk_engine.warehouse.create_cube import create_cube
from ktk_engine.warehouse.name_claim import NameClaim, drop_replaced, replaced_relations
from ktk_engine.warehouse.relations import Relations, check_view_columns
from ktk_engine.warehouse.staged_warehouse import StagedWarehouse
from ktk_engine.write.retry import Source
from ktk_engine.write.rows import schema_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ktk_engine.catalog.catalog import Relation

_LOGGER = AdapterLogger("ktk")
_C = TypeVar("_C", bound=DatasetConfig)


class Materializations(Unchanged):
    """Writes the rows of models, seeds and stored test failures."""

    def __init__(self, config: AdapterRequiredConfig, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        self._warned_of_hints: set[str] = set()
        self._with_other_columns: set[str] = set()  # models whose columns have changed in this run

    @available.parse_none
    def check_config(self, model: Mapping[str, Any]) -> None:
        """Check the configuration of the model that dbt builds.

        Args:
            model: the node as Jinja's `model`.
        """
        config = self._config_of(model)
        self.warn_of_grants(model["config"].get("grants"))
        self._warn_of_hints(model, config)
        relation = self.Relation.create(schema=model["schema"], identifier=model["alias"])
        if self.is_of_metastore(relation) and self.get_columns_in_relation(relation):
            raise DbtConfigError(
                f"{relation} is a table of the metastore, and {model['name']} would hide it as a "
                "relation of the store. Nothing was written. Keep its `file_format`, give the "
                f"model another alias, or drop the table: drop table {relation}."
            )

    @available.parse(lambda *_, **__: False)
    def goes_to_metastore(self, model: Mapping[str, Any]) -> bool:
        """Whether dbt-spark's own materialization builds a model, as a table of the metastore.

        Args:
            model: the node as Jinja's `model`.

        Raises:
            DbtConfigError: the store has a relation of this name.
        """
        if not self.keeps_in_metastore(model["config"]):
            return False
        relation = self.Relation.create(schema=model["schema"], identifier=model["alias"])
        if not self.is_of_metastore(relation):
            raise DbtConfigError(
                f"{relation} is a relation of the store, which would hide the table that "
                f"{model['name']} makes in the metastore. Nothing was written. Remove "
                "`file_format`, give the model another alias, or drop the relation: drop table "
                f"{relation}."
            )
        if isinstance(self.connections.warehouse, StagedWarehouse):
            _LOGGER.warning(
                f"{model['name']} is a table of the metastore, which cannot be staged: all readers "
                "see its rows at once, even if the run is discarded."
            )
        return True

    @available.parse_none
    def warn_of_grants(self, grants: Mapping[str, Any] | None) -> None:
        """Warn once per run that `grants` have no effect here."""
        if grants and "grants" not in self._warned_of_hints:
            self._warned_of_hints.add("grants")
            message = (
                "The config `grants` is ignored: a store has no users. All users who can read its "
                "files can read its tables; set the permissions of the folder or bucket instead."
            )
            warn_or_error(AdapterEventWarning(name="ktk", base_msg=message))

    def _warn_of_hints(self, model: Mapping[str, Any], config: ModelConfig) -> None:
        """Warn once of configs without effect, per model or for all models."""
        name, stored = str(model["name"]), isinstance(config, DatasetConfig)
        found = hints(name, model["config"], stored, model.get("columns"))
        if isinstance(config, DatasetConfig) and config.incremental is not None:
            found += without_key(name, config.incremental)
        for hint in found:
            if hint.about not in self._warned_of_hints:
                self._warned_of_hints.add(hint.about)
                warn_or_error(AdapterEventWarning(name="ktk", base_msg=hint.text))

    @available.parse(lambda *_, **__: KtkResponse(""))
    def write_model(
        self, model: Mapping[str, Any], relation: BaseRelation, sql: str, full_refresh: bool = False
    ) -> KtkResponse:
        """Write a query's rows as a dataset, in one commit.

        Args:
            model: the node as Jinja's `model`.
            relation: the model's relation.
            sql: the compiled query.
            full_refresh: whether this run is one.

        Returns:
            The response for dbt's log and run_results.
        """
        with self._after_header(model, sql) as query:
            return self._write(
                model, relation, lambda: self._query(relation, query), full_refresh, sql
            )

    def _query(self, relation: BaseRelation, query: str) -> Source[DataFrame]:
        """Give a query's rows as a source that can be computed again."""
        session = self.connections.sessions.current()
        return Source.query(session, lambda: self._rows_of(relation, query))

    def _rows_of(self, relation: BaseRelation, query: str) -> DataFrame:
        """Plan a query; the log says what it reads."""
        session = self.connections.sessions.current()
        frame = session.sql(query)
        for plan in session.plans:
            _LOGGER.info(f"{relation} reads {plan_line(plan)}")
        self.connections.sessions.check()
        return frame

    def _warn_of(self, config: DatasetConfig) -> None:
        """Warn of configs that are not checked."""
        for warning in config.unchecked:
            _LOGGER.warning(warning)

    def _after_header(self, model: Mapping[str, Any], sql: str) -> AbstractContextManager[str]:
        """Give the query after the model's `sql_header`, whose settings end with the block."""
        return self._after(str(model["config"].get("sql_header") or ""), sql)

    @contextmanager
    def _after(self, header: str, sql: str) -> Iterator[str]:
        """Run a block after a header, if any, whose settings end with it."""
        from dbt.adapters.ktk.session.sql_header import after_header

        with self.connections.running():
            if not header:
                yield sql
                return
            sessions = self.connections.sessions
            run = KtkCursor(sessions).execute
            with after_header(sessions.current(), header, sql, run) as query:
                yield query

    def _write(
        self,
        model: Mapping[str, Any],
        relation: BaseRelation,
        rows: Callable[[], Source[DataFrame | pa.Table]],
        full_refresh: bool,
        code: str | bytes,
    ) -> KtkResponse:
        """Build a dataset from rows, which are computed only after all checks.

        `code` is what computes them, for the note.
        """
        config = self._dataset_config_of(model)
        self._warn_of(config)
        schema = str(relation.schema)
        actor = self._actor(model, full_refresh)
        with self.connections.running():
            store = self.connections.warehouse.create_schema(schema)
            claim = actor.dataset(config.target)
            replaced = self._replaced(store, claim, config)
            work = self._work(model, code, full_refresh)
            before = resolve(store, config.target.scope).datasets.get(config.target.uuid)
            noted: list[Reads] = []
            source = rows().noting(noted.append)
            if config.declared or config.no_types:
                source, first = source.begun()
                config = self._with_fitting_types(config, lambda: schema_of(first))
            with findings_file(self._target_folder, str(model["unique_id"])):
                history = {**actor.history, **_views_among(replaced)}
                outcome = write_dataset(
                    store,
                    source,
                    replace(config, target=self._target(schema, config, history, full_refresh)),
                    lambda: self.connections.sessions.current().scanner(store),
                    model.get("batch"),
                )
                entry = before.entry if before else None
                note_computed(store, config.target, outcome, noted[-1:], work, entry)
                self._check_expected(work, config.target.uuid, outcome, noted[-1:])
                self._taken_out.update(
                    (schema, config.target.scope.uuid_of(name)) for name in outcome.leaving
                )
                outcome = published(outcome, store, config, history)
            notes = drop_replaced(store, claim, replaced, actor.history)
        return response_of(outcome.remarked(notes))

    def _with_fitting_types(self, config: _C, columns: Callable[[], pa.Schema]) -> _C:
        """Leave out types in YAML that do not fit their columns, and say so."""
        if not config.declared and not config.no_types:
            return config
        config, note = with_fitting_types(config, columns())
        if note:
            _LOGGER.info(note)
        return config

    def _replaced(
        self, store: ObjectStore, claim: NameClaim, config: DatasetConfig
    ) -> tuple[Relation, ...]:
        """Find the relation that a write replaces; refuses it before any row is computed."""
        replaced = replaced_relations(store, claim)
        keeps_rows = config.keeps_rows and not claim.full_refresh
        mode: Literal["files"] | None = "files" if keeps_rows else None
        target = replace(config.target, mode=mode, full_refresh=claim.full_refresh)
        check_builder(target, resolve(store, target.scope))
        return replaced

    @available.parse(lambda *_, **__: False)
    def is_incremental_model(self, model: Mapping[str, Any]) -> bool:
        """Whether a model adds to its rows, except in a full refresh."""
        if self.keeps_in_metastore(model["config"]):
            return bool(model["config"]["materialized"] == "incremental")
        config = self._config_of(model)
        if model["unique_id"] in self._with_other_columns:
            return False
        return isinstance(config, DatasetConfig) and config.incremental is not None

    def valid_incremental_strategies(self) -> list[str]:
        """Strategies that dbt accepts in a configuration; `config.model_config` checks them."""
        return list(STRATEGIES)

    @available.parse(lambda *_, **__: {"response": KtkResponse(""), "preview": None})
    def write_seed(
        self,
        model: Mapping[str, Any],
        relation: BaseRelation,
        full_refresh: bool = False,
        empty: bool = False,
    ) -> dict[str, Any]:
        """Write a CSV file as a dataset, in one commit and without Spark.

        Args:
            model: the node as Jinja's `model`.
            relation: the seed's relation.
            full_refresh: whether this run is one.
            empty: whether to write no rows (`--empty`); all rows still decide the types.

        Returns:
            `response` for the log and run_results, `preview` for `dbt seed --show`.
        """
        from dbt_common.clients.agate_helper import empty_table

        path = Path(model["root_path"]) / model["original_file_path"]
        name, config = str(model["name"]), model["config"]
        types, delimiter = seed_types(name, config), seed_delimiter(name, config)
        quoted, ragged = bool(config.get("quote_columns")), seed_ragged(name, config)
        content = b"" if empty else path.read_bytes()
        unchanged = self.unchanged(model, relation, content, full_refresh)
        if unchanged is not None and not getattr(self.config.args, "show", False):
            return {"response": unchanged, "preview": empty_table()}
        with translated():
            table = read_seed(path, delimiter, types, quoted, ragged, _LOGGER.warning)
            check_lengths(name, config.get("column_types") or {}, table)
        table = table.slice(0, 0) if empty else table
        response = unchanged or self._write(
            model, relation, lambda: Source.given(table), full_refresh, content
        )
        return {"response": response, "preview": preview(table)}

    @available.parse(lambda *_, **__: "")
    def write_view(
        self, model: Mapping[str, Any], relation: BaseRelation, sql: str, full_refresh: bool = False
    ) -> str:
        """Store a query under a name, once Spark has checked it; returns a line for the log."""
        from ktk_engine.gate.gate import validate_view
        from ktk_engine.spark.arrow_types import arrow_schema, type_names

        config = self._config_of(model)
        for function in self.connections.sessions.functions.named_in(sql):
            raise DbtRuntimeError(
                f"View {relation} calls {function.name}, which only runs of this project know, and "
                "readers of the view would not. Materialize it as a table."
            )
        is_judged = skip_unchanged_of(model["config"]).is_on
        with self.connections.running():
            if is_judged and self._view_is_unchanged(model, relation, sql, full_refresh):
                return "unchanged"
            work = self._work(model, sql, full_refresh) if is_judged else None
        with (
            self._after_header(model, sql) as sql,
            findings_file(self._target_folder, str(model["unique_id"])),
        ):
            session = self.connections.sessions.current()
            sql = session.complete_query(session.read(sql))
            found = session.schema_of(read_statement(sql))
            check_view_columns(str(relation), found.names)
            if config.contract:
                validate_view(str(relation), arrow_schema(found), config.declared)
            notes = self.relations.create_view(
                str(relation.schema),
                str(relation.identifier),
                sql,
                type_names(found),
                self._actor(model, full_refresh),
                checked=work.of_view(sql) if work is not None else "",
            )
        said = f"view, {counted(len(found.names), 'column')}"
        return "; ".join([said, *(spoken(note, DBT) for note in notes)])

    @available.parse(lambda *_, **__: "")
    def define_function(self, model: Mapping[str, Any]) -> str:
        """Register a function for this run; each Spark session defines it when it first calls it.

        Args:
            model: the node as Jinja's `model`.

        Returns:
            The statement that defines it.
        """
        function = Function(model, is_built=True)
        function.check()
        wanted = str(function.config.get("runtime_version") or "")
        if wanted and not platform.python_version().startswith(f"{wanted}."):
            _LOGGER.info(
                f"Function {model['name']} runs in dbt's Python {platform.python_version()}: "
                f"`runtime_version: {wanted}` chooses no other."
            )
        self.connections.sessions.functions.note(function)
        return function.statement

    @available.parse(lambda *_, **__: "")
    def write_cube(
        self, model: Mapping[str, Any], relation: BaseRelation, sql: str, full_refresh: bool = False
    ) -> str:
        """Store a cube's virtual table; returns a line for the log."""
        schema, name = str(relation.schema), str(relation.identifier)
        with self.connections.running():
            actor = self._actor(model, full_refresh)
            before = self.relations.view(schema, name)
            view = create_cube(self.relations, schema, name, sql, actor, self._deferred)
            if view == before:
                self.connections.writes_nothing()
            columns = self.relations.schema_of(schema, name)
        count = len(columns.names) if columns is not None else 0
        datasets = counted(len(view.datasets), "dataset")
        said = [f"cube of {datasets}, {counted(count, 'column')}"]
        said += [f"reads {item} of {place}" for item, place in view.external.items()]
        return "; ".join(said)

    @available.parse(lambda *_, **__: "")
    def write_clone(
        self,
        model: Mapping[str, Any],
        relation: KtkRelation,
        source: KtkRelation,
        full_refresh: bool = False,
    ) -> str:
        """Store a view of a relation of another environment (`dbt clone`).

        Args:
            model: the node as Jinja's `model`.
            relation: the view.
            source: the relation in `--state` that it shows.
            full_refresh: whether this run is one.

        Returns:
            A line for the log.

        Raises:
            DbtRuntimeError: there is no such relation.
        """
        columns = {column.name: column.dtype for column in self.get_columns_in_relation(source)}
        if not columns:
            raise DbtRuntimeError(
                f"There is no relation {source.schema}.{source.identifier} to clone. Build it "
                "in the environment that --state describes; if that environment has another store, "
                "name it in the profile: `defer_store`."
            )
        schema, name = str(relation.schema), str(relation.identifier)
        with translated():
            actor = self._actor(model, full_refresh)
            self.relations.create_view(schema, name, f"select * from {source}", columns, actor)
        return f"view on {source.schema}.{source.identifier}, {counted(len(columns), 'column')}"

    @available.parse(lambda *_, **__: "")
    def store_query(self, relation: BaseRelation, sql: str, header: str = "") -> None:
        """Store the rows of a query, such as a test's failures, as a table or view.

        They are not staged, so that users can see after a run why it failed.

        Args:
            relation: its name and kind.
            sql: the query.
            header: the statements before it; see `after_header`.
        """
        from ktk_engine.gate.write_request import WriteRequest
        from ktk_engine.spark.arrow_types import type_names
        from ktk_engine.write.build import build

        schema, name = str(relation.schema), str(relation.identifier)
        warehouse = self.connections.warehouse.published
        with self._after(header, sql) as sql:
            actor = self._running_actor()
            if relation.is_view:
                columns = type_names(self.connections.sessions.current().schema_of(sql))
                Relations(warehouse).create_view(schema, name, sql, columns, actor)
                return
            store = warehouse.create_schema(schema)
            target = WriteRequest(name, history=actor.history)
            claim = actor.dataset(target)
            replaced = replaced_relations(store, claim)
            rows = self._rows_to_store(sql, in_session=bool(header))
            build(store, rows, target)
            drop_replaced(store, claim, replaced, actor.history)

    def _rows_to_store(self, sql: str, in_session: bool) -> DataFrame | pa.Table:
        """The rows of a query, computed in this process if possible."""
        from ktk_engine.spark.arrow_types import seen_by_spark

        sessions = self.connections.sessions
        if in_session:
            return sessions.current().sql(sql)
        try:
            return seen_by_spark(sessions.local().rows(sql))
        except LocalEngineError as reason:
            _LOGGER.debug(f"Spark answers: {reason}")
            return sessions.current().sql(sql)

    @property
    def _target_folder(self) -> Path | None:
        """The folder of dbt's artifacts."""
        folder = getattr(self.config, "project_target_path", None)
        return Path(folder) if folder else None


def _views_among(replaced: Iterable[Relation]) -> dict[str, str]:
    """Metadata for views whose names a dataset takes over, because views have no log."""
    names = [relation.name for relation in replaced if not relation.uuid]
    return {"reason": f"replaces the view {names[0]}"} if names else {}
