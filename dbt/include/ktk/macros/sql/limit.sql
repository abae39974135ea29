{#- `dbt show` puts a limit after a model's SQL, which a Python model does not have. -#}
{% macro ktk__get_limit_sql(sql, limit) %}
  {%- if model is defined and model.language == 'python' -%}
    {%- do exceptions.raise_compiler_error(adapter.python_preview_problem(model)) -%}
  {%- endif -%}
  {{ default__get_limit_sql(adapter.without_semicolon(sql), limit) }}
{% endmacro %}
