{#- dbt run-operation ktk_rename --args '{cube: nyc, new: flights, dry_run: true}'
    Gives a cube or table another name: its files are copied, then the old name is removed. -#}
{% macro ktk_rename(cube, new, dry_run=false, schema=target.schema) %}
  {%- do log(adapter.run_command('rename', schema, [cube, new], {'dry-run': dry_run}), info=true) -%}
{% endmacro %}
