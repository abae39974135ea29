{#- An enrichment fills at least a share of the seed dataset's cells. -#}
{% test cube_coverage(model, at_least, seed=none) %}
{{ ktk_test('cube_coverage', model, {'at_least': at_least, 'seed': ktk_seed_of_test('cube_coverage', seed)}) }}
{% endtest %}
