{#- Descriptions become comments in the store; any text is data there, and no SQL. -#}
{% macro ktk__persist_docs(relation, model, for_relation, for_columns) %}
  {%- do adapter.persist_docs(relation, model, for_relation, for_columns) -%}
{% endmacro %}
