"""A model's configuration: parsed by one function, checked before the first model runs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.config.constraints import ModelConstraints, parse_constraints
from dbt.adapters.ktk.config.incremental import Incremental, parse_incremental
from dbt.adapters.ktk.config.persist_docs import check_persist_docs
from dbt.adapters.ktk.config.snapshot_config import check_versions, parse_versions
from dbt.adapters.ktk.config.time_limit import seconds_problem
from ktk_engine.errors import KtkError
from ktk_engine.gate.schema_change import ON_SCHEMA_CHANGE, OnSchemaChange
from ktk_engine.gate.target import DEFAULT_BUCKETS, Target
from ktk_engine.maintain.compactable import AUTO_COMPACT_FILES
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.suggestion import did_you_mean
from ktk_engine.write.versions import Versions

ROLES = {"cube_seed": "seed", "cube_enrichment": "enrichment"}
_WITH_ROLE = frozenset({"seed", "incremental", "snapshot"})
_STORED = frozenset({*ROLES, *_WITH_ROLE, "table"})

# Keys of ours that a dataset may have, and those that only make sense in a cube.
_CUBE_KEYS = ("cube", "dataset", "dimension_columns", "suppress_index_on")
_KEYS = (
    *_CUBE_KEYS,
    *("cube_role", "cascade", "partition_by", "indexes", "buckets", "options", "auto_compact"),
    "query_timeout",
)
# What a metastore can keep, see `metastore.py`.
IN_METASTORE = ("table", "incremental", "snapshot")
_METASTORE = (
    ", or keep the table in a metastore: `spark.sql.catalogImplementation: hive` in the profile's "
    "server_side_parameters"
)
# What Kartothek and others call them, in letters that are not near enough.
_OTHER_NAMES = {
    "indices": "indexes",
    "index_columns": "indexes",
    "secondary_indices": "indexes",
    "secondary_indexes": "indexes",
    "dimensions": "dimension_columns",
    "partition_columns": "partition_by",
    "bucket_count": "buckets",
    "num_buckets": "buckets",
    "number_of_buckets": "buckets",
    "compact": "auto_compact",
    "timeout": "query_timeout",
}
_OPTIONS = ("compression", "row_group_rows")
_COMPRESSIONS = ("zstd", "snappy", "gzip", "lz4", "brotli", "none")

# Keys of dbt, dbt-spark and others that look like ours and are left alone.
_OTHERS = frozenset(  # a text, since a hundred quoted names are hard to read
    """
    access alias auto_liquid_cluster batch_size begin bind catalog catalog_name
    cluster_by clustered_by column_types concurrent_batches contract copy_grants
    database databricks_tags delimiter deprecation_date description dist docs enabled
    event_time expires_on file_format format freshness full_refresh grants group header
    hours_to_expiration include_full_name_in_path incremental_predicates
    incremental_strategy index_type labels liquid_clustered_by location location_root
    lookback materialized matched_condition merge_exclude_columns merge_update_columns
    merge_with_schema_evolution meta on_configuration_change on_schema_change overwrite
    packages partition_expiration_days partition_field partitioned_by partitions
    partitions_limit persist_docs post_hook pre_hook predicates query_tag quote_columns
    quoting require_partition_filter required_tests schema skip_matched_step
    snapshot_meta_column_names sort sort_type sql_header static_analysis store_failures
    strategy submission_method table_format table_type tags target_database target_lag
    target_schema tblproperties test_config tmp_relation_type transient unique_key
    unique_tmp_table_suffix updated_at versioned where write_compression zorder
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class ModelConfig:
    """What a model says to this adapter.

    Attributes:
        model: the model's name, for messages.
        materialized: its materialization.
        target: the dataset it writes; None for one that stores no rows of its own.
        full_refresh: whether its own configuration asks for a full refresh.
        declared: types that its YAML gives to columns.
        contract: whether it has to have exactly these columns.
        incremental: what an incremental run does; None for a model that is always built anew.
        auto_compact: how many small or overlaid files a partition has to have for an incremental
            run to compact it; None for never.
        unchecked: warnings of constraints that are accepted and not checked.
        versions: the columns of a snapshot; None for everything else.
    """

    model: str
    materialized: str
    target: Target | None
    full_refresh: bool | None = None
    declared: Mapping[str, pa.DataType] = field(default_factory=dict)
    contract: bool = False
    incremental: Incremental | None = None
    auto_compact: int | None = None
    unchecked: tuple[str, ...] = ()
    versions: Versions | None = None


@dataclass(frozen=True)
class _Reader:
    """Reads keys of one model's configuration and says precisely what is wrong with them."""

    model: str
    config: Mapping[str, Any]
    columns: Mapping[str, Any] = field(default_factory=dict)

    def refuse(self, key: str, message: str) -> DbtConfigError:
        return DbtConfigError(f"Model {self.model}: config `{key}` {message}")

    def names(self, key: str) -> tuple[str, ...]:
        """A column name or a list of them."""
        value = self.config.get(key)
        if value is None:
            return ()
        if isinstance(value, str):
            return (value,)
        if isinstance(value, Mapping):
            raise self.refuse(key, f"must be a list of column names, but is a mapping: {value!r}.")
        if not isinstance(value, Iterable) or not all(isinstance(item, str) for item in value):
            raise self.refuse(key, f"must be a list of column names, but is {value!r}.")
        names = tuple(value)
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise self.refuse(key, f"names {', '.join(repeated)} twice.")
        return names

    def cube_role(self, materialized: str) -> str | None:
        """What a CSV, a snapshot or an incremental model is in a cube, if it is put into one."""
        if materialized not in _WITH_ROLE or not self.config.get("cube"):
            return None
        role = self.config.get("cube_role")
        if role not in ROLES.values():
            raise self.refuse("cube_role", f"must be seed or enrichment, but is {role!r}.")
        return str(role)

    def indexes(self) -> tuple[str, ...]:
        """Column names, also in the form that other adapters use: `{columns: [c]}`."""
        value = self.config.get("indexes")
        if not isinstance(value, list | tuple) or not any(isinstance(i, Mapping) for i in value):
            return self.names("indexes")
        found: list[str] = []
        for item in value:
            columns = item.get("columns") if isinstance(item, Mapping) else item
            columns = [columns] if isinstance(columns, str) else columns
            if not isinstance(columns, list) or len(columns) != 1:
                raise self.refuse(
                    "indexes",
                    f"holds {item!r}: an index here is on one column, for instance `dest` or "
                    "`{columns: [dest]}`.",
                )
            found += columns
        return _Reader(self.model, {"indexes": found}).names("indexes")

    def text(self, key: str) -> str:
        value = self.config.get(key)
        if not isinstance(value, str) or not value:
            raise self.refuse(key, f"must be a name, but is {value!r}.")
        return value

    def count(self, key: str, default: int) -> int:
        value = self.config.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.refuse(key, f"must be a whole number above 0, but is {value!r}.")
        return int(value)

    def flag(self, key: str) -> bool:
        value = self.config.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.refuse(key, f"must be true or false, but is {value!r}.")
        return bool(value)

    def auto_compact(self) -> int | None:
        """From how many files in a partition on; `true` leaves the number to us."""
        value = self.config.get("auto_compact")
        if value is None or isinstance(value, bool):  # 1 would equal True
            return AUTO_COMPACT_FILES if value else None
        if not isinstance(value, int) or value < 2:
            raise self.refuse(
                "auto_compact",
                "must be true, false, or the number of small files in a partition from which on "
                f"it is compacted, above 1, but is {value!r}.",
            )
        return value

    def check_file_format(self, materialized: str) -> None:
        """Every dataset is parquet files of ours; another format would be ignored."""
        value = self.config.get("file_format")
        if value not in (None, "parquet", "ktk"):
            raise self.refuse(
                "file_format",
                f"is {value!r}, but datasets of this adapter are parquet files that its own log "
                f"commits. Remove it{_METASTORE if materialized in IN_METASTORE else ''}.",
            )

    def contract(self) -> bool:
        """Whether a contract is enforced."""
        value = self.config.get("contract") or {}
        enforced = value.get("enforced") if isinstance(value, Mapping) else value
        return bool(getattr(value, "enforced", enforced))

    def schema_policy(
        self, materialized: str, role: str | None, unrendered: Mapping[str, Any]
    ) -> OnSchemaChange:
        """What happens to new and missing columns; plain tables follow dbt's own default."""
        if materialized == "snapshot":
            return "append_new_columns"  # as dbt does it, whatever is configured
        if role is None:
            return self.on_schema_change({**unrendered, "on_schema_change": None})
        return self.on_schema_change(unrendered)

    def on_schema_change(self, unrendered: Mapping[str, Any]) -> OnSchemaChange:
        """What the model's own configuration says; dbt fills in `ignore` (decision 17)."""
        if "on_schema_change" not in unrendered:
            return "fail"
        value = self.config.get("on_schema_change") or "ignore"
        if value not in ON_SCHEMA_CHANGE:
            nearest = did_you_mean(str(value), ON_SCHEMA_CHANGE)
            hint = f" Did you mean `{nearest}`?" if nearest else ""
            raise self.refuse(
                "on_schema_change",
                f"is {value!r}.{hint} Known: {', '.join(ON_SCHEMA_CHANGE)}.",
            )
        return cast(OnSchemaChange, value)

    def options(self) -> dict[str, Any]:
        value = self.config.get("options") or {}
        if not isinstance(value, Mapping):
            raise self.refuse("options", f"must be a mapping, but is {value!r}.")
        for key in value:
            if key not in _OPTIONS:
                nearest = did_you_mean(str(key), _OPTIONS)
                hint = f" Did you mean `{nearest}`?" if nearest else ""
                raise self.refuse(
                    "options", f"has the unknown key `{key}`.{hint} Known: {', '.join(_OPTIONS)}."
                )
        chosen: dict[str, Any] = {}
        if "compression" in value:
            chosen["compression"] = str(value["compression"]).lower()
            if chosen["compression"] not in _COMPRESSIONS:
                raise self.refuse(
                    "options.compression",
                    f"is {value['compression']!r}. Known: {', '.join(_COMPRESSIONS)}.",
                )
        if "row_group_rows" in value:
            reader = _Reader(self.model, value)
            chosen["row_group_rows"] = reader.count("row_group_rows", 1)
        return chosen

    def declared(self) -> dict[str, pa.DataType]:
        """Types that the YAML gives to columns."""
        types = {}
        for name, column in self.columns.items():
            text = getattr(column, "data_type", None)
            if text is None and isinstance(column, Mapping):
                text = column.get("data_type")
            if not text:
                continue
            try:
                types[str(name)] = parse_type(str(text))
            except KtkError as error:
                raise DbtConfigError(
                    f"Model {self.model}: column `{name}` has data_type {text!r}: {error}"
                ) from error
        return types


def parse_model_config(
    model: str,
    alias: str,
    config: Mapping[str, Any],
    columns: Mapping[str, Any] | None = None,
    own_keys: Iterable[str] | None = None,
    unrendered: Mapping[str, Any] | None = None,
    constraints: Iterable[Any] = (),
) -> ModelConfig:
    """Read what a model says to this adapter.

    Args:
        model: the model's name, for messages.
        alias: name of its relation; the dataset's id, unless `dataset` says otherwise.
        config: all of its configuration.
        columns: its columns in YAML, by name.
        own_keys: the keys to check for typing errors; None means all of `config`.
        unrendered: what was really written down, without what dbt fills in.
        constraints: the model's own constraints; only a contract enforces them.

    Raises:
        DbtConfigError: a wrong type, a missing key, or an unknown key close to one of ours, with
            the model, the key and the nearest valid one.
    """
    materialized = str(config.get("materialized") or "view")
    _refuse_near_misses(model, config if own_keys is None else own_keys)
    check_persist_docs(model, config.get("persist_docs"))
    reader = _Reader(model, config, columns or {})
    if problem := seconds_problem(config.get("query_timeout")):
        raise reader.refuse("query_timeout", problem)
    role = ROLES.get(materialized) or reader.cube_role(materialized)
    contract = reader.contract()
    declared = reader.declared() if contract or materialized in _STORED else {}
    if materialized not in _STORED:
        return ModelConfig(model, materialized, None, None, declared, contract)
    reader.check_file_format(materialized)
    if role is None:
        _refuse_cube_keys(reader, materialized)
    else:
        _require(reader, ("cube", "dimension_columns"), materialized)
    found = parse_constraints(model, columns or {}, constraints) if contract else ModelConstraints()
    try:
        target = Target(
            dataset=reader.text("dataset") if config.get("dataset") is not None else alias,
            relation=alias,
            role=role or "table",  # type: ignore[arg-type]
            cube=reader.text("cube") if role else "",
            dimension_columns=reader.names("dimension_columns"),
            partition_by=reader.names("partition_by"),
            indexes=reader.indexes(),
            suppress_index_on=reader.names("suppress_index_on"),
            clustered_by=reader.names("clustered_by"),
            buckets=reader.count("buckets", DEFAULT_BUCKETS),
            declared=declared,
            contract=contract,
            on_schema_change=reader.schema_policy(materialized, role, unrendered or {}),
            constraints=found.verified,
            keeps_versions=materialized == "snapshot",
            cascade=reader.flag("cascade"),
            **reader.options(),
        )
    except KtkError as error:
        raise DbtConfigError(f"Model {model}: {error}") from error
    cells = (*target.partition_by, *target.dimension_columns) if role else ()
    incremental = versions = None
    if materialized == "snapshot":
        versions = parse_versions(model, config)
        check_versions(model, target, versions)
    elif materialized == "incremental" or (role and config.get("incremental_strategy")):
        incremental = parse_incremental(model, config, tuple(dict.fromkeys(cells)))
    return ModelConfig(
        model,
        materialized,
        target,
        config.get("full_refresh"),
        declared,
        contract,
        incremental,
        reader.auto_compact(),
        found.unchecked,
        versions,
    )


def _require(reader: _Reader, keys: Iterable[str], materialized: str) -> None:
    missing = [key for key in keys if reader.config.get(key) is None]
    empty = [key for key in keys if key not in missing and not reader.config[key]]
    if empty:
        raise reader.refuse(empty[0], "must not be empty.")
    if missing:
        raise DbtConfigError(
            f"Model {reader.model}: a model that is materialized {materialized} needs "
            f"{' and '.join(f'`{key}`' for key in missing)} in its config, for instance "
            "{{ config(materialized='" + materialized + "', cube='nyc', "
            "dimension_columns=['carrier', 'time_hour']) }}."
        )


def _refuse_cube_keys(reader: _Reader, materialized: str) -> None:
    for key in _CUBE_KEYS:
        if reader.config.get(key):
            raise reader.refuse(
                key,
                f"belongs to models that are materialized {' or '.join(ROLES)}, but this one is "
                f"materialized {materialized}.",
            )


def _refuse_near_misses(model: str, keys: Iterable[str]) -> None:
    """An unknown key is another package's, unless it looks like a slip of one of ours."""
    for key in keys:
        name = str(key).lstrip("+").replace("-", "_")
        if name in _KEYS or name in _OTHERS:
            continue
        near = difflib.get_close_matches(name, _KEYS, n=1, cutoff=0.75)
        nearest = _OTHER_NAMES.get(name) or next(iter(near), None)
        if nearest is not None:
            raise DbtConfigError(
                f"Model {model}: config `{key}` is unknown. Did you mean `{nearest}`? "
                "(A key of your own belongs under `meta`.)"
            )
