{#- What table, cube_seed and cube_enrichment share: hooks around one write by the engine. -#}
{% macro ktk_build_dataset() %}
  {%- do adapter.check_config(model) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set write = adapter.write_python_model if model.language == 'python' else adapter.write_model -%}
  {%- set code, full_refresh = compiled_code, should_full_refresh() -%}
  {%- set response = adapter.unchanged(model, target_relation, code, full_refresh) -%}
  {{ ktk_run_pre_hooks() }}
  {%- if response is none -%}
    {%- if not full_refresh and adapter.rebuilds(model, target_relation, code) -%}
      {%- set code, full_refresh = render(model.raw_code), true -%}
    {%- endif -%}
    {%- set response = write(model, target_relation, code, full_refresh) -%}
  {%- endif -%}
  {%- call noop_statement('main') -%}
    {{ code }}
  {%- endcall -%}
  {%- do store_result('main', response=response) -%}
  {% do persist_docs(target_relation, model) %}
  {{ ktk_run_post_hooks() }}
  {{ return({'relations': [target_relation]}) }}
{% endmacro %}
