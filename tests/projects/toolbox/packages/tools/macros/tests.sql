{% test unique_combination_of_columns(model, combination_of_columns, quote_columns=false) %}
select {{ combination_of_columns | join(', ') }} from {{ model }} group by {{ combination_of_columns | join(', ') }} having count(*) > 1
{% endtest %}

{% test expression_is_true(model, expression, column_name=None) %}
{% set found = '*' if should_store_failures() else '1' %}
select {{ found }} from {{ model }} where not({{ column_name }} {{ expression }})
{% endtest %}

{% test equal_rowcount(model, compare_model) %}
{{ config(fail_calc='sum(coalesce(diff_count, 0))') }}
with a as (select 1 as id_join, count(*) as count_a from {{ model }} group by 1),
b as (select 1 as id_join, count(*) as count_b from {{ compare_model }} group by 1)
select count_a, count_b, abs(count_a - count_b) as diff_count from a full join b on a.id_join = b.id_join
{% endtest %}

{% test values_between(model, column_name, min_value=none, max_value=none, row_condition=none) %}
{{ tools.expression_between(model, column_name ~ ' >= ' ~ min_value ~ ' and ' ~ column_name ~ ' <= ' ~ max_value, row_condition) }}
{% endtest %}
{% macro expression_between(model, expression, row_condition) %}
with grouped as (select ({{ expression }}) as expression from {{ model }} {% if row_condition %} where {{ row_condition }} {% endif %}),
validation_errors as (select * from grouped where not(expression = true))
select * from validation_errors
{% endmacro %}

{% test columns_to_match_ordered_list(model, column_list) %}
  {%- if execute -%}
  {%- set names = adapter.get_columns_in_relation(model) | map(attribute='name') | map('lower') | list %}
  with relation_columns as (
    {% for name in names %} select {{ loop.index }} as relation_column_idx, cast('{{ name }}' as {{ dbt.type_string() }}) as relation_column {{ 'union all' if not loop.last }} {% endfor %}
  ), input_columns as (
    {% for name in column_list %} select {{ loop.index }} as input_column_idx, cast('{{ name }}' as {{ dbt.type_string() }}) as input_column {{ 'union all' if not loop.last }} {% endfor %}
  )
  select * from relation_columns rc full outer join input_columns ic on rc.relation_column = ic.input_column and rc.relation_column_idx = ic.input_column_idx
  where rc.relation_column is null or ic.input_column is null
  {%- endif -%}
{% endtest %}

{% test column_values_to_be_of_type(model, column_name, column_type) %}
  {%- if execute -%}
  with relation_columns as (
    {% for column in adapter.get_columns_in_relation(model) %}
    select cast('{{ dbt.escape_single_quotes(column.name | upper) }}' as {{ dbt.type_string() }}) as relation_column, cast('{{ column.dtype | upper }}' as {{ dbt.type_string() }}) as relation_column_type
    {{ 'union all' if not loop.last }}
    {% endfor %}
  )
  select * from relation_columns where relation_column = '{{ column_name | upper }}' and relation_column_type not in ('{{ column_type | upper }}')
  {%- endif -%}
{% endtest %}
