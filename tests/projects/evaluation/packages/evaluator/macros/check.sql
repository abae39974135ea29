{% macro check_model_is_table(model) %}
  {% if model.config.materialized not in ['table', 'incremental'] %}
    {{ exceptions.raise_compiler_error("Model " ~ model.name ~ " must be a table.") }}
  {% endif %}
{% endmacro %}
