{#- The column's class is the given one: `type_class: {is: unsigned integer}`. -#}
{% test type_class(model, column_name, is) %}
{{ ktk_test('type_class', model, {'column': column_name, 'is': is}) }}
{% endtest %}
