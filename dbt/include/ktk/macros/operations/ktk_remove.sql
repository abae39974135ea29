{#- dbt run-operation ktk_remove --args '{cube: nyc, dataset: weather}'
    Takes a dataset out of a cube whose model no longer exists, in one commit. -#}
{% macro ktk_remove(cube, dataset=none, cascade=false, schema=target.schema) %}
  {%- do log(adapter.remove_dataset(schema, cube, dataset, cascade), info=true) -%}
{% endmacro %}
