{#- Who may read a file is for the file system to say. -#}
{% macro ktk__apply_grants(relation, grant_config, should_revoke) %}
  {%- do adapter.warn_of_grants(grant_config) -%}
{% endmacro %}
