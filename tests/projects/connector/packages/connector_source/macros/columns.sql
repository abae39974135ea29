{%- macro get_issue_columns() -%}
  {%- set columns = [
    {"name": "_fivetran_synced", "datatype": dbt.type_timestamp()},
    {"name": "id", "datatype": dbt.type_bigint()},
    {"name": "title", "datatype": dbt.type_string()},
    {"name": "body", "datatype": dbt.type_string()},
    {"name": "created_at", "datatype": dbt.type_timestamp()},
    {"name": "closed_at", "datatype": dbt.type_timestamp()},
    {"name": "pull_request", "datatype": "boolean"},
    {"name": "milestone_id", "datatype": dbt.type_int()}
  ] -%}
  {%- for column in var('connector__issue_pass_through_columns') -%}
    {%- do columns.append({"name": column.name, "alias": column.alias, "datatype": dbt.type_string()}) -%}
  {%- endfor -%}
  {{ return(columns) }}
{%- endmacro -%}

{#- A column that the source lacks is null: the loader makes it with the first value. -#}
{%- macro fill_staging_columns(source_columns, staging_columns) -%}
  {%- set names = source_columns | map(attribute='name') | map('lower') | list -%}
  {%- for column in staging_columns %}
    {%- set alias = column.alias if 'alias' in column else column.name %}
    {% if column.name | lower in names -%} {{ column.name }} as {{ alias }}
    {%- else -%} cast(null as {{ column.datatype }}) as {{ alias }}
    {%- endif -%} {{ "," if not loop.last }}
  {%- endfor -%}
{%- endmacro -%}

{%- macro seconds_between(start, end) -%} {{ return(adapter.dispatch('seconds_between', 'connector_source')(start, end)) }} {%- endmacro -%}
{%- macro default__seconds_between(start, end) -%} {{ dbt.datediff(start, end, 'second') }} {%- endmacro -%}
{%- macro spark__seconds_between(start, end) -%} (unix_timestamp({{ end }}) - unix_timestamp({{ start }})) {%- endmacro -%}

{% test row_count_is(model, rows) %}
select count(*) as found from {{ model }} having count(*) <> {{ rows }}
{% endtest %}
