{#- A plain table: replaced in one commit, so that readers and failed runs keep the old one. -#}
{% materialization table, adapter='ktk', supported_languages=['sql', 'python'] %}
  {{ return(materialization_table_spark() if adapter.goes_to_metastore(model) else ktk_build_dataset()) }}
{% endmaterialization %}
