{#- dbt's listagg with its order, which dbt-spark ignores. -#}
{% macro ktk__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {{- adapter.listagg(measure, delimiter_text, order_by_clause, limit_num) -}}
{%- endmacro %}
