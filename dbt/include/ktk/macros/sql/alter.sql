{#- What dbt's own macros change of a relation, carried out by the engine. -#}
{% macro ktk__alter_relation_add_remove_columns(relation, add_columns, remove_columns) %}
  {%- if adapter.is_of_metastore(relation) -%}
    {{ return(spark__alter_relation_add_remove_columns(relation, add_columns, remove_columns)) }}
  {%- endif -%}
  {%- do adapter.alter_columns(relation, add_columns, remove_columns) -%}
{% endmacro %}


{#- For snapshots of Spark's own catalog; dbt-spark does not double a backtick in a name. -#}
{% macro ktk__create_columns(relation, columns) %}
  {{ return(spark__alter_relation_add_remove_columns(relation, columns, none) if columns) }}
{% endmacro %}


{% macro ktk__alter_column_type(relation, column_name, new_column_type) %}
  {%- if adapter.is_of_metastore(relation) -%}
    {{ return(spark__alter_column_type(relation, adapter.quote(column_name), new_column_type)) }}
  {%- endif -%}
  {%- do adapter.alter_column_type(relation, column_name, new_column_type) -%}
{% endmacro %}


{% macro ktk__alter_column_comment(relation, column_dict) %}
  {%- if adapter.is_of_metastore(relation) -%}
    {{ return(spark__alter_column_comment(relation, column_dict)) }}
  {%- endif -%}
  {%- do adapter.alter_column_comments(relation, column_dict) -%}
{% endmacro %}
