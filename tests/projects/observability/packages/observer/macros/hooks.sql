{% macro on_run_start() %}
  {% do return(adapter.dispatch('create_metrics_cache', 'observer')()) %}
{% endmacro %}

{% macro default__create_metrics_cache() %}
  {% set schema = api.Relation.create(database=target.database, schema=target.schema ~ '_observer_tests') %}
  {% do adapter.create_schema(schema) %}
  select 1
{% endmacro %}

{% macro upload_models(relation) %}
  {% if execute %}
    {% set rows = [] %}
    {% for node in graph.nodes.values() | selectattr('resource_type', 'in', ['model', 'seed']) %}
      {% do rows.append({
        'unique_id': node.unique_id, 'alias': node.alias, 'depends_on': node.depends_on.nodes | default([]), 'description': node.description,
        'meta': node.config.meta, 'columns': node.columns | length, 'generated_at': run_started_at.strftime('%Y-%m-%d %H:%M:%S')
      }) %}
    {% endfor %}
    {% do observer.replace_table_data(relation, rows) %}
  {% endif %}
  {{ return('') }}
{% endmacro %}

{% macro on_run_end(results) %}
  {% if execute and flags.WHICH in ('run', 'build', 'test', 'seed') %}
    {% set relation = observer.find('dbt_run_results') %}
    {% if relation %}
      {% set rows = [] %}
      {% for result in results %}
        {% set result = result.to_dict() %}
        {% do rows.append({
          'result_id': invocation_id ~ '.' ~ result.node.unique_id, 'unique_id': result.node.unique_id, 'status': result.status,
          'message': result.message, 'execution_time': result.execution_time, 'is_full_refresh': flags.FULL_REFRESH, 'invocation_id': invocation_id
        }) %}
      {% endfor %}
      {% do observer.insert_rows(relation, rows) %}
    {% endif %}
    {% do observer.merge_test_metrics() %}
  {% endif %}
  {{ return('') }}
{% endmacro %}

{# What each test has measured goes into one table, and its own is dropped. #}
{% macro merge_test_metrics() %}
  {% set target_relation = observer.find('test_metrics') %}
  {% set schema = api.Relation.create(database=target.database, schema=target.schema ~ '_observer_tests') %}
  {% for row in run_query('show tables in ' ~ schema.without_identifier()) if row['tableName'].startswith('metric_') and target_relation %}
    {% set table = api.Relation.create(database=target.database, schema=schema.schema, identifier=row['tableName'], type='table') %}
    {% set columns = adapter.get_columns_in_relation(target_relation) %}
    {% do run_query(get_merge_sql(target_relation, table, 'metric_id', columns, none)) %}
    {% do adapter.drop_relation(table) %}
  {% endfor %}
{% endmacro %}
