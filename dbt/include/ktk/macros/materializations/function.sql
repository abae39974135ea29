{#- A function of the run: a temporary one of each Spark session that calls it. -#}
{% materialization function, adapter='ktk', supported_languages=['sql', 'python'] %}
  {%- set target_relation = this.incorporate(type='function') -%}
  {%- set sql = adapter.define_function(model) -%}
  {{ ktk_run_pre_hooks() }}
  {%- call statement('main') -%}
    {{ sql }}
  {%- endcall -%}
  {{ ktk_run_post_hooks() }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
