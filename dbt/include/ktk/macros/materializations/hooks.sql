{#- As dbt's own, without its `commit`: there are no transactions, but hooks before and after one. -#}
{% macro run_hooks(hooks, inside_transaction=True) %}
  {%- for hook in hooks | selectattr('transaction', 'equalto', inside_transaction) -%}
    {%- set rendered = render(hook.get('sql')) | trim -%}
    {%- if rendered -%}
      {%- call statement(auto_begin=false) -%}{{ rendered }}{%- endcall -%}
    {%- endif -%}
  {%- endfor -%}
{% endmacro %}


{#- Hooks around a write; those outside a transaction are the outer ones. -#}
{% macro ktk_run_pre_hooks() %}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks) }}
{% endmacro %}


{% macro ktk_run_post_hooks() %}
  {{ run_hooks(post_hooks) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
{% endmacro %}
