{#- dbt run-operation ktk_info --args '{name: nyc}'
    Describes a cube or table; without a name, lists all of a schema. -#}
{% macro ktk_info(name=none, rows=false, indices=false, schema=target.schema) %}
  {%- do log(adapter.run_command('info', schema, [name], {'rows': rows, 'indices': indices}), info=true) -%}
{% endmacro %}
