{#- Rows of an enrichment that are outside the seed dataset, if they are more than a share. -#}
{% test cube_orphans(model, seed=none, at_most=0) %}
{{ ktk_test('cube_orphans', model, {'at_most': at_most, 'seed': ktk_seed_of_test('cube_orphans', seed)}) }}
{% endtest %}
