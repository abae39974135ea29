{#- dbt run-operation ktk_report --args '{cube: nyc, output: nyc.html, queries: ["month = 1"]}'
    Draws a cube or table as one HTML file: partitions, coverage, indexes, types, history. -#}
{% macro ktk_report(cube, output=none, queries=(), schema=target.schema) %}
  {%- set queries = [queries] if queries is string else queries -%}
  {%- set options = {'output': output, 'query': queries} -%}
  {%- do log(adapter.run_command('report', schema, [cube], options), info=true) -%}
{% endmacro %}
