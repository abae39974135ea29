{#- The store knows the columns; dbt-spark would describe a table of Spark's own catalog. -#}
{% macro ktk__get_columns_in_relation(relation) %}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{% endmacro %}
