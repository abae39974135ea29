{#- dbt run-operation ktk_compact --args '{cube: nyc, dataset: weather, target_size: 128MB, dry_run: true}'
    Rewrites small and overlaid files of a cube's datasets, or of a table, each in one commit; with
    `dry_run: true`, only says which. -#}
{% macro ktk_compact(cube, dataset=none, target_size=none, dry_run=false, schema=target.schema) %}
  {%- do log(adapter.compact_datasets(schema, cube, dataset, target_size, dry_run), info=true) -%}
{% endmacro %}
