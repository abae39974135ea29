{#- Every committed file of the model, of a cube those of all its datasets, has the committed classes. -#}
{% test cube_compatible(model) %}
{{ ktk_test('cube_compatible', model) }}
{% endtest %}
