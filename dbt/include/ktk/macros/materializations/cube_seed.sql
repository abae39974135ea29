{#- The seed dataset of a cube: it says which cells exist. -#}
{% materialization cube_seed, adapter='ktk', supported_languages=['sql', 'python'] %}
  {{ return(ktk_build_dataset()) }}
{% endmaterialization %}
