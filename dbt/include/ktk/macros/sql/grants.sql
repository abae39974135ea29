{#- Who may read a file is for the file system to say. -#}
{% macro ktk__apply_grants(relation, grant_config, should_revoke) %}
  {%- if adapter.is_of_metastore(relation) -%}
    {{ return(default__apply_grants(relation, grant_config, should_revoke)) }}
  {%- endif -%}
  {%- do adapter.warn_of_grants(grant_config) -%}
{% endmacro %}
