{#- dbt run-operation ktk_check --args '{name: nyc, deep: true}'
    Without a name, all cubes and tables of the schema.
    Compares every file with what was committed; fails if anything was found. `deep` reads all of
    every file, not footers alone. -#}
{% macro ktk_check(name=none, deep=false, schema=target.schema) %}
  {%- do log(adapter.run_command('check', schema, [name], {'deep': deep}), info=true) -%}
{% endmacro %}
