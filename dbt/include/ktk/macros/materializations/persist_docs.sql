{#- Descriptions become comments in the store; any text is data there, and no SQL. -#}
{% macro ktk__persist_docs(relation, model, for_relation, for_columns) %}
  {%- if adapter.is_of_metastore(relation) -%}
    {{ return(spark__persist_docs(relation, model, for_relation, for_columns)) }}
  {%- endif -%}
  {%- do adapter.persist_docs(relation, model, for_relation, for_columns) -%}
{% endmacro %}
