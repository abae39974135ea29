{#- An enrichment fills at least a share of the seed dataset's cells. -#}
{% test cube_coverage(model, at_least) %}
{{ ktk_test('cube_coverage', model, {'at_least': at_least}) }}
{% endtest %}
