{#- dbt run-operation ktk_info --args '{name: nyc}'
    Describes a cube or table; without a name, lists all of a schema. -#}
{% macro ktk_info(name=none, rows=false, indexes=false, schema=target.schema, indices=false) %}
  {%- if indices %}{% do exceptions.warn('ktk_info: `indices` is deprecated: it is `indexes` now.') %}{% endif -%}
  {%- set options = {'rows': rows, 'indexes': indexes or indices} -%}
  {%- do log(adapter.run_command('info', schema, [name], options), info=true) -%}
{% endmacro %}
