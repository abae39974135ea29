{#- dbt run-operation ktk_copy --args '{cube: nyc, into: ./backup/analytics, rename: {weather: w}, overwrite: true}'
    Copies a cube or table into another store (a path or an address), as one commit there. -#}
{% macro ktk_copy(cube, into, name=none, rename=none, include=none, exclude=none, version=none, timestamp=none, overwrite=false, dry_run=false, schema=target.schema) %}
  {%- set options = {'name': name, 'rename': rename, 'include': include, 'exclude': exclude,
    'version': version, 'timestamp': timestamp, 'overwrite': overwrite, 'dry-run': dry_run} -%}
  {%- do log(adapter.run_command('copy', schema, [cube, into], options), info=true) -%}
{% endmacro %}
