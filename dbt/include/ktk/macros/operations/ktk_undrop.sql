{#- dbt run-operation ktk_undrop --args '{cube: nyc, dataset: weather}'
    Brings back a dataset or table that was removed, as long as its files are there. -#}
{% macro ktk_undrop(cube, dataset=none, dry_run=false, schema=target.schema) %}
  {%- do log(adapter.run_command('undrop', schema, [cube, dataset], {'dry-run': dry_run}), info=true) -%}
{% endmacro %}
