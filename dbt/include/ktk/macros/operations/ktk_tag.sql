{#- dbt run-operation ktk_tag --args '{cube: nyc, name: 2026-q1, version: 12}'
    Names a version of a cube or table, so that no clean-up takes it; with `delete: true`, takes the
    name back. Without a name: lists them. -#}
{% macro ktk_tag(cube, name=none, version=none, delete=false, schema=target.schema) %}
  {%- do log(adapter.run_command('tag', schema, [cube, name], {'version': version, 'delete': delete}), info=true) -%}
{% endmacro %}
