{#- dbt run-operation ktk_info --args '{name: nyc}'
    Describes a cube or table; without a name, lists all of a schema. -#}
{% macro ktk_info(name=none, rows=false, indexes=false, schema=target.schema) %}
  {%- set options = {'rows': rows, 'indexes': indexes} -%}
  {%- do log(adapter.run_command('info', schema, [name], options), info=true) -%}
{% endmacro %}
