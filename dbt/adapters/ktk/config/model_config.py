"""A model's configuration: parsed by one function, checked before the first model runs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pyarrow as pa
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.config.config_reader import (
    ROLES,
    WITH_ROLE,
    ConfigReader,
    declared_in,
    refusing,
)
from dbt.adapters.ktk.config.constraints import ModelConstraints, parse_constraints
from dbt.adapters.ktk.config.foreign_configs import KEYS as FOREIGN
from dbt.adapters.ktk.config.foreign_configs import in_own_words
from dbt.adapters.ktk.config.incremental import (
    Incremental,
    parse_incremental,
    replaces_partitions,
)
from dbt.adapters.ktk.config.layout import index_columns, layout_keys, partition_columns
from dbt.adapters.ktk.config.merge_clauses import KEYS as MERGE_KEYS
from dbt.adapters.ktk.config.persist_docs import check_persist_docs
from dbt.adapters.ktk.config.skip_unchanged import DETERMINISTIC, KEY, skip_unchanged_of
from dbt.adapters.ktk.config.snapshot_config import check_versions, parse_versions
from dbt.adapters.ktk.config.stage import NOT_OF_A_MODEL, STAGE
from dbt.adapters.ktk.config.time_limit import seconds_problem
from ktk_engine.change.versions import Versions
from ktk_engine.gate.spelling import spelled_keys
from ktk_engine.gate.write_request import WriteRequest
from ktk_engine.types.arrow_name import arrow_name
from ktk_engine.types.declared import apply_declared

_STORED = frozenset({*ROLES, *WITH_ROLE, "table"})

# Our keys for datasets, and those that only make sense in a cube.
_CUBE_KEYS = ("cube", "dataset", "dimension_columns", "suppress_index_on", "index_dimensions")
_KEYS = (
    *_CUBE_KEYS,
    *("cube_role", "cascade", "partition_by", "indexes", "options", "auto_compact"),
    *("buckets", "bucket_by", "num_buckets", "query_timeout", "publish"),
    *(KEY, DETERMINISTIC),
    *MERGE_KEYS,
)
# Keys of dbt that decide on rows. dbt has many keys, so only near misses are refused.
_KEYS_OF_DBT = (
    *("materialized", "full_refresh", "on_schema_change", "event_time", "batch_size", "lookback"),
    *("unique_key", "incremental_strategy", "incremental_predicates", "predicates"),
    *("merge_update_columns", "merge_exclude_columns", "concurrent_batches", "clustered_by"),
    *("strategy", "check_cols", "updated_at", "hard_deletes", "invalidate_hard_deletes"),
    *("dbt_valid_to_current", "snapshot_meta_column_names"),
    *("column_types", "ragged", "pre_hook", "post_hook", "sql_header", "persist_docs"),
)
_NEAR, _NEAR_DBT = 0.75, 0.87
# Names in Kartothek and elsewhere that are not near enough to be found as typos.
_OTHER_NAMES = {
    "indices": "indexes",
    "index_columns": "indexes",
    "secondary_indices": "indexes",
    "secondary_indexes": "indexes",
    "dimensions": "dimension_columns",
    "partition_columns": "partition_by",
    "number_of_buckets": "num_buckets",
    "compact": "auto_compact",
}
# Keys of dbt and others that look like ours and are left alone.
_OTHERS = FOREIGN | frozenset(  # one text, because a long list of quoted names is hard to read
    """
    access alias begin bind catalog contract delimiter deprecation_date
    description docs enabled expires_on freshness group header index_type meta
    on_configuration_change overwrite partition_field quote_columns quoting
    required_tests schema static_analysis store_failures tags target_lag
    target_schema test_config versioned where
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class ModelConfig:
    """The configuration of a model; only a `DatasetConfig` stores rows."""

    model: str
    materialized: str
    declared: Mapping[str, pa.DataType]  # column -> its type in YAML
    contract: bool  # whether it must have exactly these columns


@dataclass(frozen=True)
class DatasetConfig(ModelConfig):
    """The configuration of a model that stores its rows as a dataset."""

    target: WriteRequest
    incremental: Incremental | None  # None for a model that is always rebuilt
    # small or overlaid files of a partition from which an incremental run compacts it; None for
    # never
    auto_compact: int | None
    unchecked: tuple[str, ...]  # warnings of constraints that are accepted and not checked
    # formats in which every commit is published; None changes nothing
    publish: tuple[str, ...] | None
    no_types: Mapping[str, str]  # column -> its type in YAML that is not a type

    @property
    def keeps_rows(self) -> bool:
        """Whether a run without full refresh keeps rows of earlier ones."""
        return self.incremental is not None


@dataclass(frozen=True)
class SnapshotConfig(DatasetConfig):
    """The configuration of a snapshot."""

    versions: Versions  # the columns that distinguish versions

    @property
    def keeps_rows(self) -> bool:
        """Always true: a snapshot is never rebuilt."""
        return True


_C = TypeVar("_C", bound=DatasetConfig)


def config_of_node(node: Mapping[str, Any]) -> ModelConfig:
    """Read the configuration of a node as Jinja's `model` has it; see `parse_model_config`."""
    return parse_model_config(
        str(node["name"]),
        str(node["alias"]),
        node["config"],
        node.get("columns"),
        unrendered=node.get("unrendered_config"),
        constraints=node.get("constraints") or (),
        file=declared_in(node.get("patch_path")),
    )


def parse_model_config(
    model: str,
    alias: str,
    config: Mapping[str, Any],
    columns: Mapping[str, Any] | None = None,
    unrendered: Mapping[str, Any] | None = None,
    constraints: Iterable[Any] = (),
    file: str = "",
) -> ModelConfig:
    """Read the configuration of a model, where `alias` is the dataset's id unless it names another.

    `unrendered` is what the project says, without dbt's defaults. The `DbtConfigError` names the
    model, the key and the nearest valid one.
    """
    materialized = str(config.get("materialized") or "view")
    _refuse_near_misses(model, config)
    check_persist_docs(model, config.get("persist_docs"))
    reader = ConfigReader(model, config, columns or {}, file)
    if STAGE in config:
        raise reader.refuse(STAGE, NOT_OF_A_MODEL)
    role = ROLES.get(materialized) or reader.cube_role(materialized)
    stored = materialized in _STORED
    mapped, metadata = in_own_words(model, config, columns or {}, stored, bool(role))
    reader = replace(reader, config=mapped)
    if problem := seconds_problem(reader.config.get("query_timeout")):
        raise reader.refuse("query_timeout", problem)
    try:
        skip_unchanged_of(config)
        reader.flag(DETERMINISTIC)
    except ValueError as error:
        raise reader.refuse(KEY, str(error)) from error
    contract = reader.contract()
    declared, no_types = reader.declared() if contract or stored else ({}, {})
    if contract or role:
        reader.refuse_types(no_types)
    if not stored:
        return ModelConfig(model, materialized, declared, contract)
    if role is None:
        _refuse_cube_keys(reader, materialized)
    else:
        _require(reader, ("cube", "dimension_columns"), materialized)
    found = parse_constraints(model, columns or {}, constraints) if contract else ModelConstraints()
    with refusing(f"Model {model}"):
        target = WriteRequest(
            dataset=reader.text("dataset") if config.get("dataset") is not None else alias,
            relation=alias,
            role=role or "table",  # type: ignore[arg-type]
            cube=reader.text("cube") if role else "",
            dimension_columns=reader.names("dimension_columns"),
            partition_by=partition_columns(reader, bool(role), replaces_partitions(config)),
            indexes=index_columns(reader),
            suppress_index_on=reader.without_index(role),
            clustered_by=layout_keys(reader, "clustered_by").columns,
            buckets=reader.count("buckets"),
            bucket_by=reader.names("bucket_by"),
            num_buckets=reader.count("num_buckets") or 1,
            declared=declared,
            contract=contract,
            on_schema_change=reader.on_schema_change(materialized, role, unrendered or {}),
            constraints=found.verified,
            keeps_versions=materialized == "snapshot",
            cascade=reader.flag("cascade"),
            metadata=metadata,
            **reader.options(),
        )
    cells = (*target.partition_by, *target.dimension_columns) if role else ()
    own = (model, materialized, declared, contract, target)
    compact, publish = reader.auto_compact(), reader.publish()
    if materialized == "snapshot":
        versions = parse_versions(model, config)
        check_versions(model, target, versions)
        return SnapshotConfig(*own, None, compact, found.unchecked, publish, no_types, versions)
    incremental = None
    if materialized == "incremental" or (role and config.get("incremental_strategy")):
        incremental = parse_incremental(model, reader.config, tuple(dict.fromkeys(cells)))
        if incremental.strategy == "microbatch" and target.on_schema_change == "full_refresh":
            raise reader.refuse(
                "on_schema_change",
                "is 'full_refresh', but a batch has only the rows of its window: run it with "
                "--full-refresh.",
            )
    return DatasetConfig(*own, incremental, compact, found.unchecked, publish, no_types)


def with_fitting_types(config: _C, columns: pa.Schema) -> tuple[_C, str]:
    """Leave out documented types that do not fit a model's columns, and give one line about it.

    In a plain table without a contract, a type in YAML is documentation. If it fits, the column is
    stored in it, so that a table can have unsigned integers and zones; otherwise the rows decide.
    In a cube or with a contract, every type is a declaration and stays.
    """
    target = config.target
    if target.role != "table" or config.contract:
        return config, ""
    declared = spelled_keys(target.declared, columns.names)
    _, findings = apply_declared(columns, declared)
    said = {
        finding.column: f"`{arrow_name(declared[finding.column])}`, "
        + (f"but is {arrow_name(finding.model)}" if finding.model else "but is not selected")
        for finding in findings
    }
    said.update({name: f"{text!r}, which is not a type" for name, text in config.no_types.items()})
    if not said:
        return config, ""
    fitting = {name: t for name, t in declared.items() if name not in said}
    note = "; ".join(f"{name} is documented as {what}" for name, what in said.items())
    return (
        replace(config, target=replace(target, declared=fitting)),
        f"Model {config.model}: {note}. Such a data_type is documentation alone; with "
        "`contract: {enforced: true}` it is refused.",
    )


def _require(reader: ConfigReader, keys: Iterable[str], materialized: str) -> None:
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


def _refuse_cube_keys(reader: ConfigReader, materialized: str) -> None:
    for key in _CUBE_KEYS:
        if reader.config.get(key):
            raise reader.refuse(
                key,
                f"belongs to models that are materialized {' or '.join(ROLES)}, but this one is "
                f"materialized {materialized}.",
            )


def _refuse_near_misses(model: str, keys: Iterable[str]) -> None:
    """Refuse unknown keys that look like typos of our keys; other packages own the rest."""
    for key in keys:
        name = str(key).lstrip("+").replace("-", "_")
        if name in _KEYS or name in _KEYS_OF_DBT or name in _OTHERS:
            continue
        near = (
            *difflib.get_close_matches(name, _KEYS, n=1, cutoff=_NEAR),
            *difflib.get_close_matches(name, _KEYS_OF_DBT, n=1, cutoff=_NEAR_DBT),
        )
        nearest = _OTHER_NAMES.get(name) or next(iter(near), None)
        if nearest is not None:
            raise DbtConfigError(
                f"Model {model}: config `{key}` is unknown. Did you mean `{nearest}`? "
                "(A key of your own belongs under `meta`.)"
            )
