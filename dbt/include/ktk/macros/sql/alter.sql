{#- Files never change: columns come, go and change with the model that builds them. -#}
{% macro ktk__alter_relation_add_remove_columns(relation, add_columns, remove_columns) %}
  {%- if adapter.is_of_metastore(relation) -%}
    {{ return(spark__alter_relation_add_remove_columns(relation, add_columns, remove_columns)) }}
  {%- endif -%}
  {%- if execute -%}{{ ktk_refuse_alter(relation) }}{%- endif -%}
{% endmacro %}


{% macro ktk__alter_column_type(relation, column_name, new_column_type) %}
  {%- if adapter.is_of_metastore(relation) -%}
    {{ return(spark__alter_column_type(relation, column_name, new_column_type)) }}
  {%- endif -%}
  {%- if execute -%}{{ ktk_refuse_alter(relation) }}{%- endif -%}
{% endmacro %}


{% macro ktk_refuse_alter(relation) %}
  {{ exceptions.raise_compiler_error(
      'The columns of ' ~ relation ~ ' cannot be altered in place: its files never change. Use '
      'on_schema_change in an incremental model, or build it with --full-refresh.') }}
{% endmacro %}
