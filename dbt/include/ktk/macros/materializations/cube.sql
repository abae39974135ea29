{#- The cube itself: one virtual table over its datasets. Other models ref it. -#}
{% materialization cube, adapter='ktk' %}
  {{ return(ktk_store_view(adapter.write_cube)) }}
{% endmaterialization %}


{#- Names the datasets of a cube; the body of a model that is materialized cube. -#}
{% macro cube_of() %}
{{- adapter.cube_comment(*varargs) }}
select * from {{ this }}
{%- endmacro %}


{#- Asks a cube for columns, rows, fewer dimensions or groups, as plain SQL. -#}
{% macro cube_query(cube, columns=none, where=none, dimension_columns=none, partition_by=none, version=none, timestamp=none) %}
{{- adapter.cube_query(cube, columns, where, dimension_columns, partition_by, version, timestamp) }}
{%- endmacro %}
