{% macro type_string() %} {{ return(api.Column.translate_type("string")) }} {% endmacro %}
{% macro type_timestamp() %} {{ return(api.Column.translate_type("timestamp")) }} {% endmacro %}
{% macro type_boolean() %} {{ return(api.Column.translate_type("boolean")) }} {% endmacro %}
{% macro type_array() %} {{ return("array<string>") }} {% endmacro %}
{% macro type_json() %} {{ return(adapter.dispatch('type_json', 'uploads')()) }} {% endmacro %}
{% macro default__type_json() %} {{ return(api.Column.translate_type("string")) }} {% endmacro %}
{% macro snowflake__type_json() %} object {% endmacro %}

{% macro column_identifier(index) -%} {{ return(adapter.dispatch('column_identifier', 'uploads')(index)) }} {%- endmacro %}
{% macro default__column_identifier(index) -%} ${{ index }} {%- endmacro %}
{% macro spark__column_identifier(index) -%} col{{ index }} {%- endmacro %}

{% macro relation_of(name) %}
  {%- for node in graph.nodes.values() | selectattr('name', 'equalto', name) | selectattr('package_name', 'equalto', 'uploads') -%}
    {%- do return(api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias)) -%}
  {%- endfor -%}
{% endmacro %}

{% macro insert_into(name, fields, content) %}
  {% set query %} insert into {{ uploads.relation_of(name) }} ({{ fields | join(', ') }}) {{ content }} {% endset %}
  {% do run_query(query) %}
{% endmacro %}

{% macro upload_results(results) -%}
  {% if execute and results != [] %}
    {% set fields = ['command_invocation_id', 'run_started_at', 'dbt_command', 'full_refresh_flag', 'invocation_args'] %}
    {% set content %}
      select {% for field in fields %} {{ uploads.column_identifier(loop.index) }}{{ ',' if not loop.last }} {% endfor %}
      from values
      ('{{ invocation_id }}', '{{ run_started_at }}', '{{ flags.WHICH }}', {{ flags.FULL_REFRESH }},
       '{{ tojson(invocation_args_dict, default='{}') | replace("\\", "\\\\") | replace("'", "\\'") }}')
    {% endset %}
    {% do uploads.insert_into('invocations', fields, content) %}
    {% set rows = [] %}
    {% for node in graph.nodes.values() %}
      {% for column in node.columns.values() %}
        {% do rows.append("('" ~ invocation_id ~ "', '" ~ node.unique_id ~ "', '" ~ column.name ~ "', '" ~ (column.description | replace("'", "\\'")) ~ "')") %}
      {% endfor %}
    {% endfor %}
    {% set fields = ['command_invocation_id', 'node_id', 'column_name', 'description'] %}
    {% do uploads.insert_into('columns', fields, 'select col1, col2, col3, col4 from values ' ~ rows | join(',\n')) if rows %}
  {% endif %}
  {{ return("") }}
{%- endmacro %}
