{#- Versions of rows: dbt's own macros compare, the engine stores in one commit. -#}
{% materialization snapshot, adapter='ktk' %}
  {%- if adapter.goes_to_metastore(model) -%}{{ return(materialization_snapshot_spark()) }}{%- endif -%}
  {%- do adapter.check_config(model) -%}
  {%- set exists, target_relation = get_or_create_relation(none, model.schema, model.alias, 'table') -%}
  {%- if not target_relation.is_table -%}
    {%- do exceptions.relation_wrong_type(target_relation, 'table') -%}
  {%- endif -%}
  {%- set response, versions_sql = adapter.unchanged(model, target_relation, compiled_code), compiled_code -%}
  {{ ktk_run_pre_hooks() }}
  {%- if response is none -%}
  {%- set strategy_macro = strategy_dispatch(config.get('strategy')) -%}
  {%- set strategy = strategy_macro(model, 'snapshotted_data', 'source_data', model['config'], exists) -%}
  {%- if exists -%}
    {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
    {%- do adapter.assert_valid_snapshot_target_given_strategy(target_relation, columns, strategy) -%}
    {%- set versions_sql = snapshot_staging_table(strategy, compiled_code, target_relation) -%}
  {%- else -%}
    {%- set versions_sql = build_snapshot_table(strategy, compiled_code) -%}
  {%- endif -%}
  {%- set response = adapter.write_snapshot(
      model, target_relation, compiled_code, versions_sql, exists) -%}
  {%- endif -%}
  {%- call noop_statement('main') -%}
    {{ versions_sql }}
  {%- endcall -%}
  {%- do store_result('main', response=response) -%}
  {% do persist_docs(target_relation, model) %}
  {{ ktk_run_post_hooks() }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{#- dbt's own hash, with separators masked in the values: ('a|b', 'c') and
    ('a', 'b|c') are two keys. Values without `|` and backslashes have the id that dbt gives. -#}
{% macro ktk__snapshot_hash_arguments(args) -%}
  md5(
    {%- for arg in args -%}
      replace(replace(coalesce(cast({{ arg }} as string), ''), '\\', '\\\\'), '|', '\\|')
      {%- if not loop.last %} || '|' || {% endif -%}
    {%- endfor -%}
  )
{%- endmacro %}


{#- dbt compares names letter by letter: a column in other letter case would be a new one in each
    run, and make a version of every row. -#}
{% macro snapshot_check_all_get_existing_columns(node, target_exists, check_cols_config) -%}
  {%- set target_relation = none -%}
  {%- if target_exists -%}
    {%- set target_relation = adapter.get_relation(
        database=node.database, schema=node.schema, identifier=node.alias) -%}
  {%- elif check_cols_config == 'all' -%}
    {{ return((false, [])) }}
  {%- endif -%}
  {{ return(adapter.checked_columns(
      node, target_relation, check_cols_config, get_columns_in_query(node['compiled_code']))) }}
{%- endmacro %}
