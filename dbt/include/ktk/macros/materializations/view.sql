{#- A stored query, kept in the store as a small document. -#}
{% materialization view, adapter='ktk' %}
  {%- do adapter.check_config(model) -%}
  {%- set target_relation = this.incorporate(type='view') -%}
  {{ ktk_run_pre_hooks() }}
  {%- set result = adapter.write_view(model, target_relation, compiled_code, should_full_refresh()) -%}
  {%- call noop_statement('main', result.message, 'OK', result.rows) -%}
    {{ compiled_code }}
  {%- endcall -%}
  {% do persist_docs(target_relation, model) %}
  {{ ktk_run_post_hooks() }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
