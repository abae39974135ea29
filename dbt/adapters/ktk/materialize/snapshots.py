"""The method that the materialization of snapshots calls; dbt's macros write the SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.config.model_config import SnapshotConfig
from dbt.adapters.ktk.config.snapshot_config import (
    check_comparable,
    check_times,
    checked_columns,
)
from dbt.adapters.ktk.history import history_of
from dbt.adapters.ktk.materialize.auto_compact import auto_compact
from dbt.adapters.ktk.materialize.computed_from import note_computed
from dbt.adapters.ktk.materialize.findings_file import findings_file
from dbt.adapters.ktk.materialize.materializations import Materializations
from dbt.adapters.ktk.materialize.outcome import KtkResponse, Outcome, response_of
from dbt.adapters.ktk.materialize.published import published
from ktk_engine.errors import ConfigurationError
from ktk_engine.log.change.reads import Reads
from ktk_engine.log.state import resolve
from ktk_engine.store.interface import ObjectStore
from ktk_engine.types.identifier import Identifier, find_name, name_finder
from ktk_engine.write.retry import Source
from ktk_engine.write.rows import schema_of

if TYPE_CHECKING:
    from dbt.adapters.base.impl import SnapshotStrategy
    from pyspark.sql import DataFrame

_LOGGER = AdapterLogger("ktk")


class Snapshots(Materializations):
    """Writes snapshots: the rows of a query, and the time from and to which each was valid."""

    @available.parse(lambda *_, **__: KtkResponse(""))
    def write_snapshot(
        self,
        model: Mapping[str, Any],
        relation: BaseRelation,
        source_sql: str,
        versions_sql: str,
        exists: bool,
    ) -> KtkResponse:
        """Store versions, in one commit.

        Args:
            model: the node as Jinja's `model`.
            relation: the snapshot's relation.
            source_sql: the snapshot's own query.
            versions_sql: the query of dbt's macros: `snapshot_staging_table` if the snapshot
                exists, else `build_snapshot_table`.
            exists: whether the snapshot exists.

        Returns:
            The response for dbt's log and run_results.
        """
        config = self._snapshot_config_of(model)
        self._warn_of(config)
        with self.connections.running():
            store = self.connections.warehouse.create_schema(str(relation.schema))
            self._check_place(model, relation, config, store)
            work = self._work(model, source_sql, False)
            before = resolve(store, config.target.scope).datasets.get(config.target.uuid)
        noted: list[Reads] = []
        from ktk_engine.spark.arrow_types import arrow_schema

        with (
            self._after_header(model, versions_sql) as query,
            findings_file(self._target_folder, str(model["unique_id"])),
        ):
            config = self._with_fitting_types(
                config, lambda: arrow_schema(self.connections.sessions.current().schema_of(query))
            )
            rows = self._query(relation, query).noting(noted.append)
            target = self._target(str(relation.schema), config, history_of(model))
            write = replace(config, target=target)
            if exists:
                self._check_stored(model, relation, source_sql, write, store)
                outcome = self._merge_versions(rows, write, store)
            else:
                outcome = self._build_versions(model, rows, write, store)
            entry = before.entry if before else None
            note_computed(store, config.target, outcome, noted[-1:], work, entry)
            self._check_expected(work, config.target.uuid, outcome, noted[-1:])
            self._warn_of_times(relation, config)
            outcome = published(outcome, store, config, target.history)
        return response_of(outcome)

    @available.parse_none
    def assert_valid_snapshot_target_given_strategy(
        self, relation: BaseRelation, column_names: dict[str, str], strategy: SnapshotStrategy
    ) -> None:
        """Check the columns of a snapshot; dbt compares one of the names case-sensitively."""
        lower = {key: name.lower() for key, name in (column_names or {}).items()}
        super().assert_valid_snapshot_target_given_strategy(relation, lower, strategy)

    @available.parse(lambda *_, **__: (False, []))
    def checked_columns(
        self,
        model: Mapping[str, Any],
        relation: BaseRelation | None,
        check_cols: object,
        columns: Sequence[str],
    ) -> tuple[bool, list[str]]:
        """Say by which columns a snapshot detects that a row has changed.

        Args:
            model: the node as Jinja's `model`.
            relation: the stored snapshot; None without one.
            check_cols: its configuration.
            columns: those of its query.

        Returns:
            Whether one of the columns is new, which makes a version of every row; and, quoted,
            those that are stored.
        """
        wanted = checked_columns(str(model["name"]), check_cols, columns)
        if relation is None:
            return False, []
        stored = [column.name for column in self.get_columns_in_relation(relation)]
        found = list(map(name_finder(stored), wanted))
        return None in found, [self.quote(name) for name in found if name is not None]

    def _snapshot_config_of(self, model: Mapping[str, Any]) -> SnapshotConfig:
        config = self._config_of(model)
        if isinstance(config, SnapshotConfig):
            return config
        raise DbtConfigError(f"Model {config.model} is not a snapshot.")

    def _check_place(
        self,
        model: Mapping[str, Any],
        relation: BaseRelation,
        config: SnapshotConfig,
        store: ObjectStore,
    ) -> None:
        """Refuse to replace anything: a snapshot is never rebuilt."""
        claim = self._actor(model).dataset(config.target)
        for other in self._replaced(store, claim, config):
            raise ConfigurationError(
                f"Snapshot {relation} is stored as {other.uuid or other.kind}, but its "
                f"configuration asks for {config.target}. A snapshot cannot be rebuilt: it "
                "would lose its history. Nothing was written. Change `cube` back, or give the "
                "snapshot another name."
            )

    def _check_stored(
        self,
        model: Mapping[str, Any],
        relation: BaseRelation,
        sql: str,
        config: SnapshotConfig,
        store: ObjectStore,
    ) -> None:
        """Check a query against the stored columns before dbt's SQL compares old with new values.

        Spark would cast them, or refuse them with a vaguer message.
        """
        from ktk_engine.change.merge_versions import check_source
        from ktk_engine.spark.arrow_types import arrow_schema

        for column in self.get_columns_in_relation(relation):
            if Identifier(column.name) == Identifier(config.versions.updated_at):
                check_times(config.model, model["config"], column.dtype)
        source = arrow_schema(self.connections.sessions.current().schema_of(sql))
        check_source(store, source, config.target, config.versions)

    def _build_versions(
        self,
        model: Mapping[str, Any],
        rows: Source[DataFrame],
        config: SnapshotConfig,
        store: ObjectStore,
    ) -> Outcome:
        from ktk_engine.change.merge_versions import build_versions

        frame, _ = rows.read()
        check_comparable(config.model, model["config"], schema_of(frame))
        updated_at = find_name(config.versions.updated_at, frame.columns) or ""
        check_times(config.model, model["config"], frame.schema[updated_at].dataType.simpleString())
        return Outcome.of(build_versions(store, frame, config.target, config.versions))

    def _merge_versions(
        self, rows: Source[DataFrame], config: SnapshotConfig, store: ObjectStore
    ) -> Outcome:
        from ktk_engine.change.merge_versions import merge_versions

        target = config.target
        scanner = self.connections.sessions.current().scanner(store)
        own = rows.depending_on(store, target.uuid)
        done = merge_versions(scanner, own, target, config.versions)
        if done is None:
            return Outcome.of(done)
        return auto_compact(Outcome.of(done), store, config, lambda: scanner, target.history)

    def _warn_of_times(self, relation: BaseRelation, config: SnapshotConfig) -> None:
        """Warn that times have another type than the current time, with which they are mixed."""
        for column in self.get_columns_in_relation(relation):
            is_time_of_change = Identifier(column.name) == Identifier(config.versions.updated_at)
            if is_time_of_change and column.dtype != "timestamp":
                _LOGGER.warning(  # the words of dbt's check_time_data_types
                    f"Data type of snapshot table timestamp columns (timestamp) of {relation} "
                    f"doesn't match derived column 'updated_at' ({column.dtype}). Please update "
                    "snapshot config 'updated_at'."
                )
