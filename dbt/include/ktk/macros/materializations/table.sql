{#- A plain table: replaced in one commit, so that readers and failed runs keep the old one. -#}
{% materialization table, adapter='ktk', supported_languages=['sql', 'python'] %}
  {{ return(ktk_build_dataset()) }}
{% endmaterialization %}
