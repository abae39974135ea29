{#- New rows are appended, replace partitions, or replace rows of the same key: one commit. -#}
{% materialization incremental, adapter='ktk', supported_languages=['sql', 'python'] %}
  {{ return(materialization_incremental_spark() if adapter.goes_to_metastore(model) else ktk_build_dataset()) }}
{% endmaterialization %}


{#- As dbt's own, and true for cube datasets that have an incremental_strategy as well. -#}
{% macro is_incremental() %}
  {%- if not execute -%}{{ return(False) }}{%- endif -%}
  {%- set relation = adapter.get_relation(this.database, this.schema, this.table) -%}
  {{ return(relation is not none
            and relation.type == 'table'
            and adapter.is_incremental_model(model)
            and not should_full_refresh()) }}
{% endmacro %}
