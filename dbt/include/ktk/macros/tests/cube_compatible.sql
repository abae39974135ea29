{#- Every committed file of the model's cube has the committed classes. -#}
{% test cube_compatible(model) %}
{{ ktk_test('cube_compatible', model) }}
{% endtest %}
