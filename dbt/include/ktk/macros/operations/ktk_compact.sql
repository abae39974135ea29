{#- dbt run-operation ktk_compact --args '{cube: nyc, dataset: weather, target_size: 128MB}'
    Rewrites small and overlaid files of a cube's datasets, or of a table, each in one commit. -#}
{% macro ktk_compact(cube, dataset=none, target_size=none, schema=target.schema) %}
  {%- do log(adapter.compact_datasets(schema, cube, dataset, target_size), info=true) -%}
{% endmacro %}
