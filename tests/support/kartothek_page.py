"""What Kartothek 5.3 offers to its users, and a test for each line of the page about it."""

from __future__ import annotations

_DATA = "data cube store metadata df_serializer"
_BAG = f"{_DATA} ktk_cube_dataset_ids"
_QUERY = "cube store conditions datasets dimension_columns partition_by payload_columns"
_VALUE = "column value"

# The functions and classes of `kartothek.api.cube`, `.discover` and `.consistency`.
CUBES = {
    "C": "name",
    "Condition": "column",
    "Conjunction": "conditions",
    "Cube": "dimension_columns partition_columns uuid_prefix seed_dataset index_columns "
    "suppress_index_on",
    "EqualityCondition": _VALUE,
    "GreaterEqualCondition": _VALUE,
    "GreaterThanCondition": _VALUE,
    "InIntervalCondition": "column start stop",
    "InequalityCondition": _VALUE,
    "IsInCondition": _VALUE,
    "LessEqualCondition": _VALUE,
    "LessThanCondition": _VALUE,
    "SimpleCondition": _VALUE,
    "VirtualColumn": "name",
    "append_to_cube": _DATA,
    "append_to_cube_from_bag": _BAG,
    "append_to_cube_from_dataframe": _DATA,
    "build_cube": f"{_DATA} overwrite partition_on",
    "build_cube_from_bag": f"{_BAG} overwrite partition_on",
    "build_cube_from_dataframe": f"{_DATA} overwrite partition_on shuffle num_buckets bucket_by",
    "check_datasets": "datasets cube",
    "cleanup_cube": "cube store",
    "cleanup_cube_bag": "cube store blocksize",
    "collect_stats": "cube store datasets",
    "collect_stats_bag": "cube store datasets blocksize",
    "copy_cube": "cube src_store tgt_store overwrite datasets renamed_cube_prefix renamed_datasets",
    "copy_cube_bag": "cube src_store tgt_store blocksize overwrite datasets",
    "delete_cube": "cube store datasets",
    "delete_cube_bag": "cube store blocksize datasets",
    "discover_cube": "uuid_prefix store filter_ktk_cube_dataset_ids",
    "discover_datasets": "cube store filter_ktk_cube_dataset_ids",
    "discover_datasets_unchecked": "uuid_prefix store filter_ktk_cube_dataset_ids",
    "discover_ktk_cube_dataset_ids": "uuid_prefix store",
    "extend_cube": f"{_DATA} overwrite partition_on",
    "extend_cube_from_bag": f"{_BAG} overwrite partition_on",
    "extend_cube_from_dataframe": f"{_DATA} overwrite partition_on",
    "get_cube_payload": "datasets cube",
    "get_payload_subset": "columns cube",
    "query_cube": _QUERY,
    "query_cube_bag": f"{_QUERY} blocksize",
    "query_cube_dataframe": _QUERY,
    "remove_partitions": "cube store conditions ktk_cube_dataset_ids metadata",
    "update_cube_from_bag": f"{_BAG} remove_conditions",
}

_STORED = (
    "store dataset_uuid metadata partition_on df_serializer overwrite secondary_indices "
    "metadata_storage_format metadata_version"
)
_UPDATED = (
    "store dataset_uuid delete_scope metadata df_serializer metadata_merger "
    "default_metadata_version partition_on sort_partitions_by secondary_indices factory"
)
_READ = (
    "dataset_uuid store columns concat_partitions_on_primary_index predicate_pushdown_to_io "
    "categoricals label_filter dates_as_object predicates factory"
)
_DDF = "table shuffle repartition_ratio num_buckets bucket_by"
_ITERATED = "central_partition_metadata load_dynamic_metadata"
_INDEX = "column index_dct dtype normalize_dtype"
_METADATA = (
    "uuid partitions metadata indices metadata_version explicit_partitions partition_keys "
    "table_meta"
)

# Those of `kartothek.api.dataset` and `.serialization`.
DATASETS = {
    "CsvSerializer": "compress",
    "DataFrameSerializer": "",
    "DatasetFactory": "dataset_uuid store_factory load_schema load_all_indices "
    "load_dataset_metadata",
    "DatasetMetadata": _METADATA,
    "DatasetMetadataBase": _METADATA,
    "ExplicitSecondaryIndex": f"{_INDEX} index_storage_key",
    "IndexBase": _INDEX,
    "ParquetSerializer": "compression chunk_size",
    "PartitionIndex": _INDEX,
    "SchemaWrapper": "schema origin",
    "build_dataset_indices": "store dataset_uuid columns factory",
    "build_dataset_indices__bag": "store dataset_uuid columns partition_size factory",
    "check_predicates": "predicates",
    "collect_dataset_metadata": "store dataset_uuid table_name predicates frac factory",
    "columns_in_predicates": "predicates",
    "commit_dataset": "store dataset_uuid new_partitions output_dataset_uuid delete_scope metadata "
    "df_serializer metadata_merger default_metadata_version partition_on factory secondary_indices",
    "copy_dataset": "source_dataset_uuid store target_dataset_uuid target_store",
    "create_empty_dataset_header": "store dataset_uuid table_meta partition_on metadata overwrite "
    "metadata_storage_format metadata_version",
    "default_serializer": "",
    "delete_dataset": "dataset_uuid store factory",
    "delete_dataset__delayed": "dataset_uuid store factory",
    "empty_dataframe_from_schema": "schema columns date_as_object",
    "ensure_store": "store",
    "filter_array_like": "array_like op value mask out strict_date_types column_name",
    "filter_df": "df filter_query",
    "filter_df_from_predicates": "df predicates strict_date_types",
    "filter_predicates_by_column": "predicates columns",
    "garbage_collect_dataset": "dataset_uuid store factory",
    "garbage_collect_dataset__delayed": "dataset_uuid store chunk_size factory",
    "hash_dataset": "store dataset_uuid subset group_key table predicates factory",
    "lazy_store": "store",
    "make_meta": "obj origin partition_keys",
    "normalize_column_order": "schema partition_keys",
    "normalize_type": "t_pa t_pd t_np metadata",
    "read_dataset_as_dataframe_bag": f"{_READ} tables dispatch_by partition_size",
    "read_dataset_as_dataframes": f"{_READ} tables dispatch_by",
    "read_dataset_as_dataframes__iterator": f"{_READ} tables dispatch_by",
    "read_dataset_as_ddf": f"{_READ} table dask_index_on dispatch_by",
    "read_dataset_as_delayed": f"{_READ} tables dispatch_by",
    "read_table": f"{_READ} table",
    "store_bag_as_dataset": f"{_STORED} bag metadata_merger",
    "store_dataframes_as_dataset": f"{_STORED} dfs",
    "store_dataframes_as_dataset__iter": f"{_STORED} df_generator",
    "store_dataset_from_ddf": f"{_DDF} ddf store dataset_uuid secondary_indices "
    "sort_partitions_by delete_scope metadata df_serializer metadata_merger metadata_version "
    "partition_on overwrite",
    "store_delayed_as_dataset": f"{_STORED} delayed_tasks metadata_merger",
    "update_dataset_from_dataframes": f"{_UPDATED} {_ITERATED} df_list",
    "update_dataset_from_dataframes__iter": f"{_UPDATED} {_ITERATED} df_generator",
    "update_dataset_from_ddf": f"{_UPDATED} {_DDF} ddf",
    "update_dataset_from_delayed": f"{_UPDATED} delayed_tasks",
    "validate_compatible": "schemas ignore_pandas",
    "write_single_partition": "store dataset_uuid data metadata df_serializer overwrite "
    "metadata_merger metadata_version partition_on factory secondary_indices",
}

# Types and names that these modules import, and that are nobody's to call.
NO_FUNCTIONS = {
    *("Callable", "Union", "KeyValueStore", "StoreFactory", "StoreInput"),
    *("ConjunctionType", "LiteralType", "PredicatesType"),
}
# What they take that is not an argument of a user: values of classes and helpers that are left out.
NO_ARGUMENTS = {
    *("name", "column", "value", "start", "stop", "uuid", "partitions", "indices"),
    *("explicit_partitions", "partition_keys", "store_factory", "index_dct", "dtype", "schemas"),
    *("normalize_dtype", "index_storage_key", "schema", "origin", "obj", "t_pa", "t_pd", "t_np"),
    *("ignore_pandas", "date_as_object", "array_like", "op", "mask", "out", "strict_date_types"),
    *("column_name", "df", "filter_query"),
}

COMMANDS = {
    "": "--skv --store --n_threads -j --color",
    "cleanup": "",
    "copy": "--tgt_store --overwrite --cleanup --include --exclude",
    "delete": "--include --exclude",
    "index": "",
    "info": "",
    "query": "",
    "stats": "--include --exclude",
}

_VERBS, _CUBE = "unit/api/test_cube_verbs.py", "unit/api/test_cube.py"
_TABLES, _COPY = "unit/api/test_coming_from_kartothek.py", "unit/maintain/test_copy.py"
_SUITE = (
    "kartothek_suite/test_kartothek_suite.py::test_every_case_has_the_outcome_that_is_written_down"
)

# Table of the page -> the first name in a line -> the test of that line.
TESTS = {
    "Functions": {
        "build_cube": f"{_VERBS}::test_all_datasets_are_one_commit",
        "extend_cube": f"{_VERBS}::test_extend",
        "append_to_cube": f"{_VERBS}::test_append_overlays_cells",
        "update_cube_from_bag": f"{_VERBS}::test_delete_and_update",
        "remove_partitions": f"{_VERBS}::test_partitions",
        "query_cube": _SUITE,
        "delete_cube": f"{_VERBS}::test_a_whole_cube_or_table_goes_and_comes_back",
        "copy_cube": f"{_COPY}::test_names",
        "collect_stats": "unit/describe/test_stats.py::test_each_dataset_has_its_size",
        "cleanup_cube": "unit/maintain/test_leftovers.py::test_from_python",
        "discover_cube": "unit/cube/test_corpus.py::test_reference_cube_opens",
        "discover_datasets": f"{_CUBE}::test_store",
        "check_datasets": "unit/cube/test_consistency.py::test_violations",
        "get_cube_payload": f"{_TABLES}::test_columns_of_a_cube",
        "Cube": f"{_VERBS}::test_a_specification_says_it_all",
        "C": "unit/conditions/test_parse.py::test_what_is_understood",
        "EqualityCondition": f"{_TABLES}::test_conditions_mean_what_kartotheks_do",
        "IsInCondition": f"{_TABLES}::test_conditions_mean_what_kartotheks_do",
    },
    "Arguments": {
        "data": f"{_VERBS}::test_one_frame_is_the_seed_dataset",
        "cube": f"{_CUBE}::test_store",
        "dimension_columns": f"{_VERBS}::test_a_specification_says_it_all",
        "store": "unit/store/test_open_store.py::test_object_stores",
        "tgt_store": f"{_COPY}::test_a_copy_has_the_same_rows_and_indices",
        "metadata": f"{_VERBS}::test_metadata_is_kept_and_seen",
        "overwrite": f"{_VERBS}::test_build_again",
        "ktk_cube_dataset_ids": f"{_VERBS}::test_partitions",
        "conditions": f"{_VERBS}::test_delete_and_update",
        "datasets": f"{_TABLES}::test_arguments_of_a_query",
        "renamed_cube_prefix": f"{_COPY}::test_names",
    },
    "Datasets": {
        "store_dataframes_as_dataset": f"{_TABLES}::test_a_table_is_stored_and_updated",
        "update_dataset_from_dataframes": f"{_TABLES}::test_a_table_is_stored_and_updated",
        "read_table": "unit/api/test_table.py::test_rows_and_columns",
        "build_dataset_indices": "unit/maintain/test_index.py::test_awkward_values_of_a_table",
        "create_empty_dataset_header": f"{_TABLES}::test_parts_are_one_commit",
        "delete_dataset": f"{_VERBS}::test_a_whole_cube_or_table_goes_and_comes_back",
        "garbage_collect_dataset": f"{_TABLES}::test_a_table_is_cleaned",
        "copy_dataset": f"{_COPY}::test_tables",
        "collect_dataset_metadata": f"{_TABLES}::test_a_table_describes_itself",
        "DatasetMetadata": f"{_TABLES}::test_a_table_describes_itself",
    },
    "arguments of datasets": {
        "store": f"{_TABLES}::test_a_table_is_stored_and_updated",
        "dfs": f"{_TABLES}::test_parts_are_one_commit",
        "metadata": f"{_TABLES}::test_arguments_of_a_table",
        "overwrite": f"{_TABLES}::test_a_table_is_stored_and_updated",
        "delete_scope": f"{_TABLES}::test_rows_of_a_table_are_deleted",
        "columns": "unit/api/test_table.py::test_conditions_prune_and_hold",
        "source_dataset_uuid": f"{_COPY}::test_tables",
    },
    "Commands": {
        "--skv": "unit/cli/test_find_store.py::test_profile",
        "info": "unit/cli/test_commands.py::test_info",
        "stats": "unit/describe/test_stats.py::test_command_takes_patterns",
        "query": "unit/cli/test_query.py::test_a_table",
        "delete": "unit/cli/test_commands.py::test_remove",
        "cleanup": "unit/cli/test_commands.py::test_cleanup",
        "index": "unit/maintain/test_index.py::test_command",
        "copy": f"{_COPY}::test_command",
    },
}
