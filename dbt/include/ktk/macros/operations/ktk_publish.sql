{#- dbt run-operation ktk_publish --args '{name: nyc, dataset: weather}'
    Publishes a cube's datasets, or a table, as Delta from now on, or with `iceberg: true` as Iceberg; with `stop: true` no more, with
    `check: true` only compares. With `kartothek: true`, Kartothek's documents in their place. What a model configures counts from its next run on. -#}
{% macro ktk_publish(name, dataset=none, stop=false, check=false, delta=false, iceberg=false, kartothek=false, schema=target.schema) %}
  {%- set options = {'dataset': dataset, 'stop': stop, 'check': check, 'delta': delta, 'iceberg': iceberg, 'kartothek': kartothek} -%}
  {%- do log(adapter.run_command('publish', schema, [name], options), info=true) -%}
{% endmacro %}
