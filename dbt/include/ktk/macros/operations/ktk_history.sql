{#- dbt run-operation ktk_history --args '{name: nyc, limit: 5}'
    Lists the commits of a cube or table, newest first. -#}
{% macro ktk_history(name, limit=20, schema=target.schema) %}
  {%- do log(adapter.run_command('history', schema, [name], {'limit': limit}), info=true) -%}
{% endmacro %}
