{#- Reads a table or cube as an earlier commit left it. -#}
{% macro at_version(relation, version=none, timestamp=none) %}
{{- adapter.at_version(relation, version, timestamp) }}
{%- endmacro %}
