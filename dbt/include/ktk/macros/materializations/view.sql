{#- A stored query, kept in the store as a small document. -#}
{% materialization view, adapter='ktk' %}
  {{ return(ktk_store_view(adapter.write_view)) }}
{% endmaterialization %}


{#- What view and cube share: hooks around one document. -#}
{% macro ktk_store_view(write) %}
  {%- do adapter.check_config(model) -%}
  {%- set target_relation = this.incorporate(type='view') -%}
  {{ ktk_run_pre_hooks() }}
  {%- set message = write(model, target_relation, compiled_code, should_full_refresh()) -%}
  {%- call noop_statement('main', message, 'OK') -%}
    {{ compiled_code }}
  {%- endcall -%}
  {% do persist_docs(target_relation, model) %}
  {{ ktk_run_post_hooks() }}
  {{ return({'relations': [target_relation]}) }}
{% endmacro %}
