{#- dbt run-operation ktk_diff --args '{name: nyc, other: prod.nyc, markdown: true}'
    Counts what differs between two versions of a cube or table, or between two schemas. -#}
{% macro ktk_diff(name, other=none, from=none, to=none, columns=none, where=none, key=none, examples=none, markdown=false, json=false, fail=false, schema=target.schema) %}
  {%- set options = {
    'from': from, 'to': to, 'where': where, 'examples': examples, 'markdown': markdown, 'json': json,
    'columns': columns if columns is none or columns is string else columns | join(','),
    'key': key if key is none or key is string else key | join(','),
    'exit-zero': not fail,
  } -%}
  {%- do log(adapter.run_command('diff', schema, [name, other], options), info=true) -%}
{% endmacro %}
