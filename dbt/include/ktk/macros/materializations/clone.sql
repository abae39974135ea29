{#- `dbt clone`: a view on what the state has. A dataset's files are stored under its own uuid,
    and the clean-up of one dataset knows nothing about another that would need them. -#}
{% materialization clone, adapter='ktk' %}
  {%- if not defer_relation -%}
    {%- do log('No relation found in state manifest for ' ~ model.unique_id, info=true) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- if existing and not flags.FULL_REFRESH -%}
    {%- do log('Relation ' ~ existing ~ ' already exists', info=true) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- set target_relation = this.incorporate(type='view') -%}
  {%- if existing and target_relation.place == defer_relation.place -%}
    {%- do log('Target relation and defer relation are the same, skipping clone for relation: ' ~ target_relation) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- set message = adapter.write_clone(model, target_relation, defer_relation, flags.FULL_REFRESH) -%}
  {%- call noop_statement('main', message, 'OK') -%}
    select * from {{ defer_relation }}
  {%- endcall -%}
  {% do persist_docs(target_relation, model) %}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
