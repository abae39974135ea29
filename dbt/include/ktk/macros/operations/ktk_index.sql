{#- dbt run-operation ktk_index --args '{cube: nyc, columns: [dest], dataset: flights}'
    Indexes columns of a cube or table in one commit that rewrites no data file; with `drop: true`,
    drops their indexes. What a model configures counts from its next run on. -#}
{% macro ktk_index(cube, columns, dataset=none, drop=false, dry_run=false, schema=target.schema) %}
  {%- set columns = [columns] if columns is string else columns | list -%}
  {%- set options = {'dataset': dataset, 'drop': drop, 'dry-run': dry_run} -%}
  {%- do log(adapter.run_command('index', schema, [cube] + columns, options), info=true) -%}
{% endmacro %}
