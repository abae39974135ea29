"""Configs of other adapters, and what this adapter does with each.

`foreign_configs.py` acts on this table. docs/configs-of-other-adapters.md shows it,
and a test compares the two.

A config is *refused* if it promises something about what is stored, where, how long, or who may see
it. It is a *warning* if rows and their readers are the same without it, because it only says how
another engine does its work. One that is *always so* or carried out needs no word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Treatment = Literal["carried out", "always so", "mapped", "noted", "warning", "refused"]


@dataclass(frozen=True)
class ForeignConfig:
    """One config."""

    key: str
    adapters: str  # those that have it
    # `carried out` as it is, `always so` here, `mapped` to the config `instead`, `noted` in the
    # user metadata of the dataset, a `warning` when the model runs, or `refused`
    treatment: Treatment
    why: str  # what holds here, as a clause
    instead: str = ""  # what to do or use; for `mapped` the config itself
    fine: tuple[str, ...] = ()  # values that request only what is always so
    of_tables: bool = True  # means nothing, in any adapter, for models that store no rows
    # values that name another engine's tables, whose features tables here have too: a warning
    # once per run
    likewise: tuple[str, ...] = ()


_PLACE = "the profile's `store` says where files are stored, with a folder for each schema"
_TWO_PARTS = "names have two parts here, schema and name"
_SET_STORE = "use the config `schema`, or a target whose profile has another `store`"
_PARQUET = "files are parquet, committed by this adapter's own log"
# Formats whose tables are parquet files with commits, merges, deletes and versions.
_TABLE_FORMATS = ("delta", "iceberg", "hudi")
_SORT = "rows of each file of a plain table are sorted by these columns, for skipping row groups"
NO_USERS = "a store has no users: who can read its files can read its tables"
_BUCKET_RIGHTS = "set the permissions of the folder or bucket"
APART = "keep what some may not read in a schema of its own, and set the permissions of its folder"
_EXPIRY = "rows never expire by themselves"
_DELETE = "delete them in a post-hook: `delete from {{ this }} where ...`"
_COMPUTE = "the profile says where Spark runs, for all models"
_ONE_COMMIT = "a write is one commit of files with unique names: readers see all of it or nothing"
_ANY_NUMBER = "a write may have any number of partitions"
_COMMENT = "Spark's jobs show dbt's comment"
_NO_TEMPORARY = "writes make no temporary tables"
_HERE = "a Python model runs in dbt's own Python environment"
_INSTALL = "install what it imports next to dbt"
_NO_SERVICE = "no service refreshes tables: runs keep them up to date"
_OTHER_MERGE = "the merge here has other settings for conditions and columns"
_OWN_CLAUSES = "use `matched_condition`, `not_matched_condition` and `merge_update_columns`"
_OLD_VERSIONS = "old versions stay until the clean-up"
_CANCELLED = "seconds after which a model is cancelled"
_METADATA = "kept in the dataset's user metadata: `ktk info` shows it, Kartothek passes it on"


def _carried_out(key: str, adapters: str, why: str) -> ForeignConfig:
    return ForeignConfig(key, adapters, "carried out", why)


def _always_so(key: str, adapters: str, why: str) -> ForeignConfig:
    return ForeignConfig(key, adapters, "always so", why)


def _mapped(key: str, adapters: str, to: str, why: str) -> ForeignConfig:
    return ForeignConfig(key, adapters, "mapped", why, to)


def _noted(key: str, adapters: str) -> ForeignConfig:
    return ForeignConfig(key, adapters, "noted", _METADATA, of_tables=False)


def _hint(
    key: str, adapters: str, why: str, instead: str = "", tables: bool = True
) -> ForeignConfig:
    return ForeignConfig(key, adapters, "warning", why, instead, of_tables=tables)


def _refused(
    key: str,
    adapters: str,
    why: str,
    instead: str,
    *fine: str,
    tables: bool = True,
    likewise: tuple[str, ...] = (),
) -> ForeignConfig:
    return ForeignConfig(key, adapters, "refused", why, instead, fine, tables, likewise)


def _each(keys: str, make: Callable[[str], ForeignConfig]) -> tuple[ForeignConfig, ...]:
    """Say the same of several configs, given as one text of names."""
    return tuple(map(make, keys.split()))


_LAYOUT = (
    _carried_out("partition_by", "Spark, Databricks, Snowflake", "a folder for each value"),
    _mapped("partitioned_by", "Athena", "partition_by", "a folder for each value"),
    _carried_out("clustered_by", "Spark, Databricks", _SORT),
    _mapped("cluster_by", "BigQuery, Snowflake", "clustered_by", _SORT),
    _mapped("liquid_clustered_by", "Databricks", "clustered_by", _SORT),
    _mapped("zorder", "Databricks", "clustered_by", _SORT),
    _mapped("sorted_by", "Athena, Trino", "clustered_by", _SORT),
    _mapped("sort", "Redshift", "clustered_by", _SORT),
    _carried_out("buckets", "Spark, Databricks", "how many tasks write the rows"),
    _mapped(
        "bucketed_by", "Athena", "bucket_by", "these columns distribute the rows of a partition"
    ),
    _mapped(
        "bucket_count", "Athena", "num_buckets", "over this many tasks, each with its own files"
    ),
    _carried_out("indexes", "Postgres", "a secondary index on each column"),
    _carried_out(
        "options",
        "Spark, Databricks",
        "`compression` and `row_group_rows`; other options do nothing, with a warning once per run",
    ),
    _mapped("compression", "Glue", "options.compression", "the codec of the parquet files"),
    _mapped("write_compression", "Athena", "options.compression", "the codec of the parquet files"),
    _hint(
        "auto_liquid_cluster",
        "Databricks",
        "no service chooses columns by watching queries",
        "name columns in `clustered_by` or `indexes`",
    ),
    _hint(
        "automatic_clustering",
        "Snowflake",
        "files are rewritten only when a run writes them",
        "use `auto_compact`",
    ),
    _hint("sort_type", "Redshift", "rows are sorted by the first column, then the next"),
    _hint("dist", "Redshift", "files are not bound to nodes", "use `partition_by`"),
    _hint("unlogged", "Postgres", "every write is a commit"),
    _mapped("order_by", "ClickHouse", "clustered_by", _SORT),
    *_each(
        "primary_key projections sharding_key",
        lambda key: _hint(
            key, "ClickHouse", "files are skipped by their statistics and indexes", "use `indexes`"
        ),
    ),
    *_each(
        "target_file_size write_options hudi_options skip_optimize",
        lambda key: _hint(
            key,
            "Snowflake, Glue, Databricks",
            "the writer chooses the size of files",
            "use `options` and `auto_compact`",
        ),
    ),
)

_INCREMENTAL = (
    _carried_out("incremental_strategy", "all", "how new rows are combined with old ones"),
    _carried_out("unique_key", "all", "a name or a list"),
    _carried_out("incremental_predicates", "all", "which old rows a merge may replace"),
    _carried_out("predicates", "Databricks", "another name for `incremental_predicates`"),
    _carried_out("merge_update_columns", "all", "the columns that a merge updates"),
    _carried_out("merge_exclude_columns", "all", "the columns that a merge does not update"),
    _carried_out("matched_condition", "Databricks", "which matched rows a merge updates"),
    _carried_out("not_matched_condition", "Databricks", "which new rows a merge inserts"),
    _carried_out(
        "not_matched_by_source_action",
        "Databricks",
        "what a merge does to old rows that no new row matches",
    ),
    _carried_out("not_matched_by_source_condition", "Databricks", "which of these old rows"),
    _carried_out("skip_matched_step", "Databricks", "a merge updates no row"),
    _carried_out("skip_not_matched_step", "Databricks", "a merge inserts no row"),
    _carried_out("target_alias", "Databricks", "the name of old rows in conditions of a merge"),
    _carried_out("source_alias", "Databricks", "the name of new rows in conditions of a merge"),
    _carried_out("on_schema_change", "all", "what happens to new and missing columns"),
    _refused(
        "merge_with_schema_evolution",
        "Databricks",
        "`on_schema_change` decides about new columns, for every strategy",
        "set `on_schema_change: append_new_columns`",
    ),
    _refused(
        "partitions",
        "BigQuery",
        "`insert_overwrite` replaces the partitions that the new rows have",
        "use `incremental_strategy: replace_where` with `incremental_predicates` for fixed ones",
    ),
    _always_so("unique_tmp_table_suffix", "Databricks, Athena", _NO_TEMPORARY),
    _always_so("use_safer_relation_operations", "Databricks", _ONE_COMMIT),
    _always_so("ha", "Athena", _ONE_COMMIT),
    _hint("tmp_relation_type", "Snowflake", _NO_TEMPORARY),
    _hint("temp_schema", "Athena", _NO_TEMPORARY),
    _hint("partitions_limit", "Athena", _ANY_NUMBER, "use `buckets`"),
    _hint("force_batch", "Athena", _ANY_NUMBER),
    _hint(
        "incremental_apply_config_changes",
        "Databricks",
        "an incremental run honours changed `indexes` and properties, and refuses another layout",
        "run with `--full-refresh` to change the layout",
    ),
    *_each(
        "delete_condition insert_condition update_condition "
        "merge_update_columns_default_rule merge_update_columns_rules",
        lambda key: _refused(key, "Athena", _OTHER_MERGE, _OWN_CLAUSES),
    ),
    *_each(
        "merge_clauses merge_insert_condition merge_on_using_columns "
        "merge_returning_columns merge_update_condition merge_update_set_expressions",
        lambda key: _refused(key, "DuckDB", _OTHER_MERGE, _OWN_CLAUSES),
    ),
    *_each(
        "overwrite_columns immutable_where",
        lambda key: _refused(
            key,
            "Snowflake",
            "a run replaces whole rows",
            "use `merge_update_columns` or `incremental_predicates`",
        ),
    ),
    _refused(
        "inserts_only",
        "ClickHouse",
        "old rows would stay next to those that replace them",
        "use `incremental_strategy: append`",
    ),
    *_each(
        "enable_list_inference intermediate_format custom_temp_suffix use_iceberg_temp_views",
        lambda key: _hint(key, "BigQuery, Glue", _NO_TEMPORARY),
    ),
    _refused("sync_nested_columns", "Trino", "only whole columns are added", "use --full-refresh"),
    _refused(
        "copy_materialization",
        "BigQuery",
        "rows are written by one commit of the strategy",
        "use `incremental_strategy`",
    ),
    _hint("on_table_exists", "Trino", "a table is replaced in one commit"),
)

_PLACES = (
    _hint("location_root", "Spark, Databricks", _PLACE, _SET_STORE),
    _refused("location", "DuckDB", _PLACE, _SET_STORE),
    _refused("external_location", "Athena", _PLACE, _SET_STORE),
    _refused("s3_data_dir", "Athena", _PLACE, _SET_STORE),
    _refused("s3_data_naming", "Athena", _PLACE, _SET_STORE),
    _refused("base_location_root", "Snowflake", _PLACE, _SET_STORE),
    _refused("base_location_subpath", "Snowflake", _PLACE, _SET_STORE),
    _refused("external_volume", "Snowflake", _PLACE, _SET_STORE),
    _always_so("include_full_name_in_path", "Databricks", "paths have the schema and the table"),
    *_each(
        "database target_database",
        lambda key: _hint(key, "all", _TWO_PARTS, "use the config `schema`", tables=False),
    ),
    _hint("s3_staging_dir", "Athena", "query results are not stored"),
    _hint("s3_tmp_table_dir", "Athena", _NO_TEMPORARY),
    _refused(
        "catalog_name",
        "Snowflake, Databricks",
        "a store is its own catalog",
        "remove it, or name a metastore in the profile's `server_side_parameters`",
    ),
    _refused(
        "glue_register",
        "DuckDB",
        "no other catalog lists the tables of a store",
        "let its readers use Kartothek, or `ktk_engine` in Python",
    ),
    *_each(
        "custom_location storage_uri",
        lambda key: _refused(key, "Glue, BigQuery", _PLACE, _SET_STORE),
    ),
)

_FORMATS = (
    _refused(
        "file_format",
        "Spark, Databricks",
        _PARQUET,
        "remove it, or keep a table, incremental model or snapshot in a metastore: "
        "`spark.sql.catalogImplementation: hive` in the profile's `server_side_parameters`",
        "parquet",
        "ktk",
        likewise=_TABLE_FORMATS,
    ),
    _refused("format", "Athena, DuckDB", _PARQUET, "remove it", "parquet"),
    _refused(
        "table_format",
        "Databricks, Snowflake",
        _PARQUET,
        "remove it",
        "default",
        "ktk",
        likewise=_TABLE_FORMATS,
    ),
    _refused("table_type", "Athena", _PARQUET, "remove it", "hive", likewise=_TABLE_FORMATS),
    _refused(
        "engine",
        "ClickHouse",
        "tables have one kind, which keeps each row that was written",
        "remove it; use `unique_key` to replace rows",
        "mergetree()",
        "mergetree",
    ),
    _hint("iceberg_version", "Snowflake", _PARQUET),
    _refused(
        "add_iceberg_timestamp",
        "Glue",
        "no column is added to a model's rows",
        "select current_timestamp() in the model",
    ),
    _refused("field_delimiter", "Athena", _PARQUET, "remove it"),
    _refused(
        "properties",
        "Trino",
        "each of them has a config of its own",
        "use `partition_by`, `clustered_by`, `options` and `tblproperties`",
    ),
)

_KEPT = (
    _noted("tblproperties", "Spark, Databricks"),
    _noted("table_properties", "Athena"),
    _noted("databricks_tags", "Databricks"),
    _noted("labels", "BigQuery"),
    _noted("table_tag", "Snowflake"),
    _carried_out("persist_docs", "all", "descriptions become comments in the store"),
    _refused("partition_expiration_days", "BigQuery", _EXPIRY, _DELETE),
    _refused(
        "hours_to_expiration",
        "BigQuery",
        "tables never expire by themselves",
        "drop the table in an operation, or with `ktk drop`",
    ),
    _hint("transient", "Snowflake", _OLD_VERSIONS, "use `ktk cleanup`"),
    _refused("ttl", "ClickHouse", _EXPIRY, _DELETE),
    _hint("backup", "Redshift", "the storage keeps backups, not this adapter"),
    *_each(
        "iceberg_expire_snapshots purge_dropped_iceberg_data versions_to_keep",
        lambda key: _hint(key, "Glue, Athena", _OLD_VERSIONS, "use `ktk cleanup`"),
    ),
    _always_so(
        "enable_change_history", "BigQuery", "each commit says what it changed: `ktk history`"
    ),
)

_ACCESS = (
    _hint("grants", "all", NO_USERS, _BUCKET_RIGHTS, tables=False),
    _hint("grant_access_to", "BigQuery", NO_USERS, _BUCKET_RIGHTS, tables=False),
    _hint("lf_grants", "Athena", NO_USERS, _BUCKET_RIGHTS, tables=False),
    _hint("copy_grants", "Snowflake", NO_USERS, tables=False),
    _hint("copy_tags", "Snowflake", "a rebuild keeps the properties of a table", tables=False),
    _hint("view_security", "Trino", NO_USERS, tables=False),
    _hint("sql_security", "ClickHouse", NO_USERS, tables=False),
    _hint("definer", "ClickHouse", NO_USERS, tables=False),
    _refused("lf_tags_config", "Athena", NO_USERS, _BUCKET_RIGHTS, tables=False),
    _refused("lf_inherited_tags", "Athena", NO_USERS, _BUCKET_RIGHTS, tables=False),
    _refused("resource_tags", "BigQuery", NO_USERS, _BUCKET_RIGHTS, tables=False),
    _refused("row_filter", "Databricks", NO_USERS, APART, tables=False),
    _refused("row_access_policy", "Snowflake, Dremio", NO_USERS, APART, tables=False),
    _refused("column_mask", "Databricks, of a column", NO_USERS, APART, tables=False),
    _refused("masking_policy", "Snowflake, Dremio, of a column", NO_USERS, APART, tables=False),
    _refused("policy_tags", "BigQuery, of a column", NO_USERS, APART, tables=False),
    _refused("secure", "Snowflake", NO_USERS, _BUCKET_RIGHTS, tables=False),
    _refused(
        "kms_key_name",
        "BigQuery",
        "the storage encrypts files, not this adapter",
        "set the default key of the bucket or disk",
    ),
    _hint(
        "require_partition_filter",
        "BigQuery",
        "readers need not give a condition",
        "use `query_timeout` to limit what a query may cost",
    ),
    *_each(
        "access_control_list notebook_access_control_list",
        lambda key: _hint(key, "Databricks", NO_USERS, _BUCKET_RIGHTS, tables=False),
    ),
)

_ENGINES = (
    _hint("query_tag", "Snowflake", _COMMENT, "use `query-comment`", False),
    _hint("query_tags", "Databricks", _COMMENT, "use `query-comment`", False),
    _hint("snowflake_warehouse", "Snowflake", _COMPUTE, tables=False),
    _hint("databricks_compute", "Databricks", _COMPUTE, tables=False),
    _hint("work_group", "Athena", _COMPUTE, tables=False),
    _mapped(
        "timeout", "Spark, Databricks, BigQuery, of Python models", "query_timeout", _CANCELLED
    ),
    _hint("submission_method", "Spark, Databricks", _COMPUTE, tables=False),
    _hint("native_drop", "Athena", "a drop is one commit, and the clean-up removes the files"),
    _hint("seed_by_insert", "Athena", "a CSV file is written in one commit, without SQL"),
    _hint("seed_s3_upload_args", "Athena", "the profile's `storage_options` hold for all writes"),
    _hint("view_update_via_alter", "Databricks", "a view is replaced in one step", tables=False),
    *_each(
        "packages index_url additional_libs environment_key environment_dependencies "
        "notebook_scoped_libraries",
        lambda key: _hint(key, "Databricks", _HERE, _INSTALL, tables=False),
    ),
    *_each(
        "cluster_id job_cluster_config http_path create_notebook existing_job_id "
        "user_folder_for_python python_job_config additional_task_settings post_hook_tasks",
        lambda key: _hint(key, "Databricks", _COMPUTE, tables=False),
    ),
    *_each(
        "notebook_template_id reservation engine_config skip_workgroup_check "
        "spark_cross_account_catalog spark_encryption spark_requester_pays",
        lambda key: _hint(key, "BigQuery, Athena", _COMPUTE, tables=False),
    ),
    *_each(
        "query_settings connection_overrides disable_on_cluster force_on_cluster "
        "snowflake_initialization_warehouse",
        lambda key: _hint(key, "ClickHouse, Snowflake", _COMPUTE, tables=False),
    ),
    *_each(
        "query_group client_tags",
        lambda key: _hint(key, "Redshift, Trino", _COMMENT, "use `query-comment`", tables=False),
    ),
    *_each(
        "auto_refresh enable_refresh refresh_interval_minutes max_staleness "
        "refresh_warehouse scheduler grace_period schedule",
        lambda key: _hint(key, "BigQuery, Snowflake, Redshift, Trino", _NO_SERVICE, tables=False),
    ),
    _mapped("job_execution_timeout_seconds", "BigQuery", "query_timeout", _CANCELLED),
)

# Title of a group -> its configs.
FOREIGN_CONFIGS: dict[str, tuple[ForeignConfig, ...]] = {
    "Layout of files": _LAYOUT,
    "Incremental models": _INCREMENTAL,
    "Where files are stored": _PLACES,
    "Formats": _FORMATS,
    "What is kept, and how long": _KEPT,
    "Who may read": _ACCESS,
    "How the engine works": _ENGINES,
}
