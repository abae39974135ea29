{% macro type_of(name) %}
  {%- set types = {'string': dbt.type_string(), 'long_string': dbt.type_string(), 'float': dbt.type_float(), 'int': dbt.type_int(),
                   'boolean': 'boolean', 'timestamp': dbt.type_timestamp()} -%}
  {{ return(types[name]) }}
{% endmacro %}

{% macro empty_table(columns) %}
with empty_table as (
  select
  {%- for name, kind in columns %}
    cast({{ "'dummy'" if 'string' in kind else "'1900-01-01 00:00:00'" if kind == 'timestamp' else 'true' if kind == 'boolean' else '123456789' }} as {{ observer.type_of(kind) }}) as {{ name }}{{ ',' if not loop.last }}
  {%- endfor %}
)
select * from empty_table where 1 = 0
{% endmacro %}

{% macro quoted(value) -%}
  {%- if value is none -%} null
  {%- elif value is number or value is boolean -%} {{ value }}
  {%- else -%} '{{ (value if value is string else tojson(value)) | replace("\\", "\\\\") | replace("'", "\\'") | replace("\n", "\\n") }}'
  {%- endif -%}
{%- endmacro %}

{# As many rows a statement as its size and the chunks allow. #}
{% macro insert_rows(relation, rows) %}
  {% set columns = adapter.get_columns_in_relation(relation) %}
  {% set base %} insert into {{ relation }} ({{ columns | map(attribute='name') | join(', ') }}) values {% endset %}
  {% set current = namespace(rows=[], size=0) %}
  {% for row in rows %}
    {% set text = [] %}
    {% for column in columns %}
      {% set value = observer.quoted(row.get(column.name)) | trim %}
      {% do text.append("cast(" ~ value ~ " as timestamp)" if column.dtype == 'timestamp' else value) %}
    {% endfor %}
    {% set text = "(" ~ text | join(", ") ~ ")" %}
    {% if current.rows and (current.rows | length >= var('chunk_size') or current.size + text | length > var('query_max_size')) %}
      {% do run_query(base ~ current.rows | join(",\n")) %}
      {% set current.rows = [] %}
      {% set current.size = 0 %}
    {% endif %}
    {% do current.rows.append(text) %}
    {% set current.size = current.size + text | length %}
  {% endfor %}
  {% if current.rows %} {% do run_query(base ~ current.rows | join(",\n")) %} {% endif %}
{% endmacro %}

{% macro replace_table_data(relation, rows) %} {{ return(adapter.dispatch('replace_table_data', 'observer')(relation, rows)) }} {% endmacro %}
{% macro default__replace_table_data(relation, rows) %} {{ exceptions.raise_compiler_error("spark__ is called on Spark") }} {% endmacro %}
{% macro spark__replace_table_data(relation, rows) %}
  {% call statement('truncate_relation') -%} delete from {{ relation }} where 1 = 1 {%- endcall %}
  {% do observer.insert_rows(relation, rows) %}
{% endmacro %}

{% macro find(name) %}
  {% set nodes = graph.nodes.values() | selectattr('resource_type', 'equalto', 'model') | selectattr('name', 'equalto', name) | list %}
  {% do return(adapter.get_relation(database=nodes[0].database, schema=nodes[0].schema, identifier=nodes[0].alias)) %}
{% endmacro %}
