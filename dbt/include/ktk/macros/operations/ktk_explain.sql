{#- dbt run-operation ktk_explain --args '{cube: nyc, where: "dest = ''SFO''", columns: [carrier]}'
    Says which files a query of a cube opens, and why. -#}
{% macro ktk_explain(cube, where=none, columns=none, schema=target.schema) %}
  {%- set listed = columns if columns is none or columns is string else columns | join(',') -%}
  {%- do log(adapter.run_command('explain', schema, [cube, where], {'columns': listed}), info=true) -%}
{% endmacro %}
