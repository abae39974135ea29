{#- dbt run-operation ktk_adopt --args '{name: nyc, force: true, dry_run: false}'
    Takes over what another program made of a cube or table; `dry_run` only says what. -#}
{% macro ktk_adopt(name, force=false, dry_run=false, schema=target.schema) %}
  {%- do log(adapter.run_command('adopt', schema, [name], {'force': force, 'dry-run': dry_run}), info=true) -%}
{% endmacro %}
