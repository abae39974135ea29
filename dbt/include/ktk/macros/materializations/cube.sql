{#- The cube itself: one virtual table over its datasets. Other models ref it. -#}
{% materialization cube, adapter='ktk' %}
  {%- do adapter.check_config(model) -%}
  {%- set target_relation = this.incorporate(type='view') -%}
  {{ ktk_run_pre_hooks() }}
  {%- set result = adapter.write_cube(model, target_relation, compiled_code, should_full_refresh()) -%}
  {%- call noop_statement('main', result.message, 'OK', result.rows) -%}
    {{ compiled_code }}
  {%- endcall -%}
  {% do persist_docs(target_relation, model) %}
  {{ ktk_run_post_hooks() }}
  {{ return({'relations': [target_relation]}) }}
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
