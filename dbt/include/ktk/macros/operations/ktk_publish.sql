{#- dbt run-operation ktk_publish --args '{name: nyc, dataset: weather}'
    Publishes a cube's datasets, or a table, as Delta from now on; with `stop: true` no more, with
    `check: true` only compares. What a model configures counts from its next run on. -#}
{% macro ktk_publish(name, dataset=none, stop=false, check=false, schema=target.schema) %}
  {%- set options = {'dataset': dataset, 'stop': stop, 'check': check} -%}
  {%- do log(adapter.run_command('publish', schema, [name], options), info=true) -%}
{% endmacro %}
