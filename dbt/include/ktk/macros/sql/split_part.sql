{#- The rows of dbt-spark, whose array has no such element for ANSI mode, and is never null for
    Spark 3.5; any delimiter means itself. -#}
{% macro ktk__split_part(string_text, delimiter_text, part_number) -%}
  try_element_at(split({{ string_text }}, concat('\\Q', {{ delimiter_text }}, '\\E')), {{ part_number or 1 }})
{%- endmacro %}
