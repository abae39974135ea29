{#- dbt run-operation ktk_why --args '{name: nyc, dataset: flights}'
    Says what a cube or table was computed from, and what of it has changed since. -#}
{% macro ktk_why(name, dataset=none, schema=target.schema) %}
  {%- do log(adapter.run_command('why', schema, [name], {'dataset': dataset}), info=true) -%}
{% endmacro %}
