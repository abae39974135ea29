{#- An enrichment dataset of a cube: left-joined to the seed dataset by its dimension columns. -#}
{% materialization cube_enrichment, adapter='ktk', supported_languages=['sql', 'python'] %}
  {{ return(ktk_build_dataset()) }}
{% endmaterialization %}
