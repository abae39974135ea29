{#- The end of a staged run: all that it wrote is published, or nothing. A project that sets the
    variable `ktk_stage` has this in its `on-run-end`; in other runs it does nothing. -#}
{% macro ktk_publish_stage(results) %}
  {%- if execute -%}{{ adapter.end_staged_run(results) }}{%- endif -%}
{% endmacro %}
