{#- dbt run-operation ktk_publish --args '{name: nyc, dataset: weather}'
    Publishes a cube's datasets, or a table, as Delta from now on, or in the formats that are given: `delta: true`, `iceberg: true`. With `stop: true` no more, with
    `check: true` only compares. With `kartothek: true`, Kartothek's documents in their place. What a model configures counts from its next run on. -#}
{% macro ktk_publish(name, dataset=none, stop=false, check=false, kartothek=false, schema=target.schema) %}
  {%- set options = {'dataset': dataset, 'stop': stop, 'check': check, 'kartothek': kartothek} -%}
  {%- do options.update(kwargs) -%}
  {%- do log(adapter.run_command('publish', schema, [name], options), info=true) -%}
{% endmacro %}
