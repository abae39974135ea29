{#- No row lacks a value in a column by which files are laid out. A view that is still to be written
    names them: `no_null_partitions: {columns: [origin]}`. -#}
{% test no_null_partitions(model, columns=none) %}
{{ ktk_test('no_null_partitions', model, {'columns': columns}) }}
{% endtest %}
