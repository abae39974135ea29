{#- dbt run-operation ktk_check --args '{name: nyc}'
    Compares every file with the committed schema; fails if anything was found. -#}
{% macro ktk_check(name, schema=target.schema) %}
  {%- do log(adapter.run_verb('check', schema, [name]), info=true) -%}
{% endmacro %}
