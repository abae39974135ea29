{#- dbt run-operation ktk_restore --args '{cube: nyc, version: 12}'
    Makes a cube or table what it was at an earlier version, tag or `timestamp`, as one commit; with
    `dry_run: true`, only says what would change. -#}
{% macro ktk_restore(cube, version=none, timestamp=none, dry_run=false, schema=target.schema) %}
  {%- set options = {'version': version, 'timestamp': timestamp, 'dry-run': dry_run} -%}
  {%- do log(adapter.run_command('restore', schema, [cube], options), info=true) -%}
{% endmacro %}
