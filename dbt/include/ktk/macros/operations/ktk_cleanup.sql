{#- dbt run-operation ktk_cleanup --args '{name: nyc, older_than: 7d, keep_versions: 10, delete: true}'
    Lists files that no kept version needs; with `delete: true`, deletes them. -#}
{% macro ktk_cleanup(name=none, older_than='7d', keep_versions=10, delete=false, schema=target.schema) %}
  {%- set options = {'older-than': older_than, 'keep-versions': keep_versions, 'delete': delete} -%}
  {%- do log(adapter.run_command('cleanup', schema, [name], options), info=true) -%}
{% endmacro %}
