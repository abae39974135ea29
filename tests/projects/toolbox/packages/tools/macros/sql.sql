{% macro star(from, except=[]) -%} {{ return(adapter.dispatch('star', 'tools')(from, except)) }} {%- endmacro %}
{% macro default__star(from, except) -%}
  {%- if not execute -%} * {%- else -%}
  {%- for column in adapter.get_columns_in_relation(from) if column.name | lower not in except -%}
    {{ adapter.quote(column.name) | trim }}{{ ', ' if not loop.last }}
  {%- endfor -%}
  {%- endif -%}
{%- endmacro %}

{% macro get_column_values(table, column, order_by='count(*) desc') -%}
  {%- if not execute -%} {{ return([]) }} {%- endif -%}
  {%- set relation = load_relation(table) -%}
  {%- call statement('get_column_values', fetch_result=true) %}
    select {{ column }} as value from {{ table }} group by {{ column }} order by {{ order_by }}
  {% endcall -%}
  {{ return(load_result('get_column_values')['data'] | map(attribute=0) | list if relation else []) }}
{%- endmacro %}

{% macro pivot(column, values, agg='sum', then_value=1) -%}
  {% for value in values %}
    {{ agg }}(case when {{ column }} = '{{ dbt.escape_single_quotes(value) }}' then {{ then_value }} else 0 end) as {{ adapter.quote(value) }}{{ ',' if not loop.last }}
  {% endfor %}
{%- endmacro %}

{# Columns that one relation lacks are null there, in the widest type that any has. #}
{% macro union_relations(relations, source_column_name='_dbt_source_relation') -%}
  {%- if not execute -%} {{ return('') }} {%- endif -%}
  {%- set all = {} -%} {%- set own = {} -%}
  {%- for relation in relations -%}
    {%- do own.update({relation: []}) -%}
    {%- for column in adapter.get_columns_in_relation(relation) -%}
      {%- do own[relation].append(column.column) -%}
      {%- if column.column not in all or (column.is_string() and column.string_size() > all[column.column].string_size()) -%}
        {%- do all.update({column.column: column}) -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endfor -%}
  {% for relation in relations %}
    (select cast({{ dbt.string_literal(relation) }} as {{ dbt.type_string() }}) as {{ source_column_name }},
      {% for column in all.values() %}
        cast({{ adapter.quote(column.column) if column.column in own[relation] else 'null' }} as {{ column.data_type }}) as {{ adapter.quote(column.column) }}{{ ',' if not loop.last }}
      {% endfor %}
    from {{ relation }})
    {{ 'union all' if not loop.last }}
  {% endfor %}
{%- endmacro %}

{% macro unpivot(relation, keys) %}
  {% for column in adapter.get_columns_in_relation(relation) if column.name not in keys %}
    select {{ keys | join(', ') }}, cast('{{ column.name }}' as {{ dbt.type_string() }}) as field, cast({{ column.name }} as {{ dbt.type_string() }}) as value
    from {{ relation }} {{ 'union all' if not loop.last }}
  {% endfor %}
{% endmacro %}

{% macro surrogate_key(fields) -%}
  {%- set parts = [] -%}
  {%- for field in fields -%}
    {%- do parts.append("coalesce(cast(" ~ field ~ " as " ~ dbt.type_string() ~ "), '_null_')") -%}
    {%- do parts.append("'-'") if not loop.last -%}
  {%- endfor -%}
  {{ dbt.hash(dbt.concat(parts)) }}
{%- endmacro %}

{% macro deduplicate(relation, partition_by, order_by) -%} {{ return(adapter.dispatch('deduplicate', 'tools')(relation, partition_by, order_by)) }} {%- endmacro %}
{% macro default__deduplicate(relation, partition_by, order_by) -%}
  select distinct data.* from {{ relation }} as data natural join (select *, row_number() over (partition by {{ partition_by }} order by {{ order_by }}) as rn from {{ relation }}) where rn = 1
{%- endmacro %}
{% macro databricks__deduplicate(relation, partition_by, order_by) -%}
  select unpacked.* from (
    select max_by(struct(*), struct({{ order_by }})) as row from {{ relation }} group by {{ partition_by }}
  ) lateral view inline(array(row)) unpacked
{%- endmacro %}
{% macro spark__deduplicate(relation, partition_by, order_by) -%} {{ return(tools.databricks__deduplicate(relation, partition_by, order_by)) }} {%- endmacro %}

{% macro generate_series(upper) %}
  with p as (select 0 as generated_number union all select 1),
  unioned as (
    select {% for i in range(10) %} p{{ i }}.generated_number * power(2, {{ i }}) {{ '+' if not loop.last }} {% endfor %} + 1 as n
    from {% for i in range(10) %} p as p{{ i }} {{ 'cross join' if not loop.last }} {% endfor %}
  )
  select cast(n as bigint) as generated_number from unioned where n <= {{ upper }} order by 1
{% endmacro %}
