{# Each test leaves its rows in a table of its own. #}
{% materialization test, default %}
  {% if model.test_metadata and model.test_metadata.namespace == 'observer' %}
    {% do return(dbt.materialization_test_default()) %}
  {% endif %}
  {% set relation = api.Relation.create(database=target.database, schema=target.schema ~ '_observer_tests', identifier='rows_' ~ local_md5(model.unique_id)[:8], type='table') %}
  {% do run_query(dbt.create_table_as(False, relation, sql)) %}
  {% do context.update({'sql': 'select * from ' ~ relation}) %}
  {% set result = dbt.materialization_test_default() %}
  {% do adapter.drop_relation(relation) %}
  {% do return(result) %}
{% endmaterialization %}

{% test metric_is_calm(model, column_name, most) %}
  {% if execute %}
    {% set metrics = api.Relation.create(database=target.database, schema=target.schema ~ '_observer_tests', identifier='metric_' ~ local_md5(model ~ column_name)[:8], type='table') %}
    {% set columns = dbt.get_columns_in_query('select * from ' ~ model) %}
    {% set query %}
      select concat(cast(day as string), '.{{ column_name }}') as metric_id, cast({{ column_name }} as {{ dbt.type_float() }}) as value,
             cast('{{ run_started_at.strftime("%Y-%m-%d %H:%M:%S") }}' as timestamp) as updated_at
      from {{ model }} where '{{ columns | length }}' = '2'
    {% endset %}
    {% do run_query(dbt.create_table_as(False, metrics, query)) %}
    select * from {{ metrics }} where value > {{ most }}
  {% else %}
    select 1 as nothing where 1 = 0
  {% endif %}
{% endtest %}
