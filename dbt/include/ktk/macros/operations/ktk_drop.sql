{#- dbt run-operation ktk_drop --args '{cube: nyc, dataset: weather}'
    Takes a dataset out of a cube whose model no longer exists, in one commit. -#}
{% macro ktk_drop(cube, dataset=none, cascade=false, schema=target.schema) %}
  {%- do log(adapter.drop_dataset(schema, cube, dataset, cascade), info=true) -%}
{% endmacro %}
