{#- The dimension columns address a row uniquely, over all partitions. -#}
{% test cube_cells_unique(model) %}
{{ ktk_test('cube_cells_unique', model) }}
{% endtest %}
