{% test dates_in_range(model, column) %}
select * from {{ model }} where {{ column }} < cast('2020-01-01' as timestamp) or {{ column }} > current_timestamp()
{% endtest %}
