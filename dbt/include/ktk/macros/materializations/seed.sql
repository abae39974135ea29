{#- A CSV file as a dataset: one Arrow write, which needs no Spark. -#}
{% materialization seed, adapter='ktk' %}
  {%- do adapter.check_config(model) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {{ ktk_run_pre_hooks() }}
  {%- set result = adapter.write_seed(model, target_relation, should_full_refresh(), flags.EMPTY) -%}
  {%- do store_result('agate_table', response='OK', agate_table=result.preview) -%}
  {%- call noop_statement('main') -%}
    {# dbt wants a text here; the rows come from the file. -#}
  {%- endcall -%}
  {%- do store_result('main', response=result.response) -%}
  {% do persist_docs(target_relation, model) %}
  {{ ktk_run_post_hooks() }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
