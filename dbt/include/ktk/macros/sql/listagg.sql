{#- dbt's listagg with its order, which dbt-spark ignores. Where only the first values count, they
    travel as hexadecimal text, so that no value can hold the mark between them. -#}
{% macro ktk__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- set order = 'within group (' ~ order_by_clause ~ ')' if order_by_clause else '' -%}
  {%- if not limit_num -%}
    listagg({{ measure }}, {{ delimiter_text }}) {{ order }}
  {%- else -%}
    {%- set words = measure.split(none, 1) -%}
    {%- set distinct = words | length == 2 and words[0] | lower == 'distinct' -%}
    {%- set value = words[1] if distinct else measure -%}
    array_join(
      transform(
        slice(
          split(
            listagg({{ 'distinct ' if distinct }}hex(encode(cast({{ value }} as string), 'UTF-8')), ',') {{ order }},
            ','
          ),
          1, {{ limit_num }}
        ),
        value -> decode(unhex(value), 'UTF-8')
      ),
      {{ delimiter_text }}
    )
  {%- endif -%}
{%- endmacro %}
